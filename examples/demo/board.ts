/**
 * The board: shows how it goes.
 *
 * On a terminal a few lines that are drawn over; elsewhere one line for each thing that happens. Colours only where
 * they are wanted (`NO_COLOR` and pipes are respected by `styleText`).
 */
import { styleText } from 'node:util'
import type { Kill, Recovery } from './killer.ts'
import type { Progress } from './progress.ts'

/** What the board shows of a run. */
export interface Scene {
  readonly progress: Progress
  readonly total: number
  readonly kills: number
  /** Lines in the log. */
  fed(): number
  /** Deaths so far. */
  killed(): number
}

/** A board in use. */
export interface Board {
  kill(kill: Kill): void
  recovery(kill: Kill, recovery: Recovery | null): void
  /** Leaves the last picture and gives the terminal back. */
  close(): void
}

/** Text in a style, where styles are wanted. */
export function styled(style: 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', text: string): string {
  return styleText(style, text, { stream: process.stdout })
}

/** A number as people read it. */
export const count = (number: number) => Math.round(number).toLocaleString('en-US')

const moments: Readonly<Record<Kill['moment'], (epoch: number) => string>> = {
  starting: () => 'before it had begun',
  working: (epoch) => `at work on epoch ${epoch}`,
  committed: (epoch) => `epoch ${epoch} committed, not visible yet`,
  visible: (epoch) => `epoch ${epoch} just visible`,
}

/** What the next worker did first. */
function recoveryText(kill: Kill, recovery: Recovery | null): string {
  if (recovery === null) return 'killed before it could'
  const { event, epoch } = recovery
  if (event === 'opened') return epoch === kill.epoch ? `epoch ${epoch} planned again` : `on with epoch ${epoch}`
  return event === 'promoted' ? `epoch ${epoch} made visible` : `epoch ${epoch} closed`
}

/** Opens the board that suits the output. */
export function openBoard(scene: Scene): Board {
  return process.stdout.isTTY ? liveBoard(scene) : plainBoard(scene)
}

/** One line a death, and one now and then. */
function plainBoard({ progress, total, fed }: Scene): Board {
  const report = () => {
    const done = `${count(progress.lines)} of ${count(total)} lines counted`
    console.log(`  ${done}, ${count(fed())} in the log, ${progress.committed} epochs`)
  }
  const timer = setInterval(report, 2000)
  return {
    kill() {},
    recovery: (kill, recovery) => console.log(`  ${deathOf(kill)}${recoveryText(kill, recovery)}`),
    close() {
      clearInterval(timer)
      report()
    },
  }
}

const framesMs = 80
const deathsShown = 6
/** Cursor and wrapping of lines, off and on. */
const hidden = '\x1b[?25l\x1b[?7l'
const shown = '\x1b[?25h\x1b[?7h'

function liveBoard(scene: Scene): Board {
  const deaths = new Map<number, string>()
  let drawn = 0
  const draw = () => {
    // Without wrapping, a narrow terminal cuts lines instead of spoiling the picture.
    const rows = [...picture(scene), '', ...[...deaths.values()].slice(-deathsShown)]
    process.stdout.write(`${drawn > 0 ? `\x1b[${drawn}A` : ''}\r\x1b[J${hidden}${rows.join('\n')}\n`)
    drawn = rows.length
  }
  const timer = setInterval(draw, framesMs)
  process.once('exit', () => process.stdout.write(shown))
  draw()
  return {
    kill(kill) {
      deaths.set(kill.number, `  ${deathOf(kill)}`)
    },
    recovery(kill, recovery) {
      deaths.set(kill.number, `  ${deathOf(kill)}${styled('green', recoveryText(kill, recovery))}`)
    },
    close() {
      clearInterval(timer)
      draw()
      process.stdout.write(shown)
    },
  }
}

function picture({ progress, total, kills, fed, killed }: Scene): string[] {
  const isDone = progress.lines === total && killed() === kills
  const worker = isDone
    ? 'at rest'
    : progress.moment === 'starting'
      ? styled('yellow', 'a new one starts')
      : styled('green', 'running')
  const label = (text: string) => styled('dim', text.padEnd(9))
  return [
    `  ${label('lines')}${bar(progress.lines / total, fed() / total)}  ${count(progress.lines)} of ${count(total)}`,
    `  ${label('epochs')}${progress.committed} committed, ${progress.died} attempts died`,
    `  ${label('worker')}${worker}, killed ${styled('bold', String(killed()))} of ${kills} times`,
  ]
}

const barWidth = 36

/** Counted lines in full, lines in the log in half tone. */
function bar(done: number, fed: number): string {
  const cells = (share: number) => Math.min(barWidth, Math.floor(share * barWidth))
  const full = cells(done)
  const half = Math.max(0, cells(fed) - full)
  const rest = barWidth - full - half
  return styled('green', '━'.repeat(full)) + styled('cyan', '━'.repeat(half)) + styled('dim', '─'.repeat(rest))
}

function deathOf(kill: Kill): string {
  const lived = `${(kill.livedMs / 1000).toFixed(1)} s`
  const death = `kill ${String(kill.number).padStart(2)}  ${lived.padStart(5)}  ${moments[kill.moment](kill.epoch)}`
  return `${death.padEnd(54)}${styled('dim', '→')} `
}
