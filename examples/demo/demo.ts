/**
 * The demo: word count on generated lines, while its worker is killed again and again.
 *
 * Nothing but Node: log, state and output are files in a directory of their own. When all lines are counted, the
 * output is read from the files of the sink and held against an independent count. Exit code 1 when one differs.
 *
 *     npm start -- [--lines N] [--kills N] [--seconds N] [--seed N] [--keep]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openBoard, styled } from './board.ts'
import { createTopic, startFeeder } from './feeder.ts'
import { startKiller } from './killer.ts'
import { lineStream } from './lines.ts'
import { startPawl, succeeded } from './pawl.ts'
import { printVerdict, printWelcome } from './print.ts'
import { Progress } from './progress.ts'
import { judge } from './verdict.ts'

const { values } = parseArgs({
  options: {
    lines: { type: 'string', default: '200000' },
    kills: { type: 'string', default: '12' },
    seconds: { type: 'string', default: '24' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
  },
})
const [total, kills, seconds] = [values.lines, values.kills, values.seconds].map(Number)
if (!(total >= 100 && kills >= 1 && seconds >= 1)) {
  console.error('  --lines takes a number of at least 100, --kills and --seconds one of at least 1')
  process.exit(2)
}

const directory = mkdtempSync(join(tmpdir(), 'pawl-demo-'))
const pipeline = fileURLToPath(new URL('../word-count/pipeline.ts', import.meta.url))
const lines = lineStream(Number(values.seed))
const progress = new Progress()
const startedAtMs = performance.now()

printWelcome(total, kills)
await createTopic(directory)
const killer = startKiller({
  args: ['run', pipeline, '--dir', directory, '--json'],
  kills,
  everyMs: (1000 * seconds) / kills,
  progress,
  onKill: (kill) => board.kill(kill),
  onRecovery: (kill, recovery) => board.recovery(kill, recovery),
})
const feeder = startFeeder({ directory, lines, total, seconds, mayEnd: () => killer.kills >= kills })
const board = openBoard({ progress, total, kills, fed: () => feeder.fed, killed: () => killer.kills })

process.once('SIGINT', () => {
  cleanUp()
  process.exit(130)
})

try {
  await Promise.race([run(), killer.failed])
  board.close()
  const verdict = judge(join(directory, 'files', 'word-count', 'word-counts'), lines.counts)
  printVerdict(verdict, { total, progress, kills: killer.kills, seconds: (performance.now() - startedAtMs) / 1000 })
  const equal = verdict.differences.length === 0
  if (values.keep || !equal) console.log(`  everything is in ${directory}\n`)
  else rmSync(directory, { recursive: true })
  process.exitCode = equal ? 0 : 1
} catch (error) {
  board.close()
  feeder.stop()
  killer.stop()
  console.error(`  ${styled('red', error instanceof Error ? error.message : String(error))}`)
  console.error(`  everything is in ${directory}`)
  process.exit(1)
}

/** Until all lines are counted and shown. */
async function run(): Promise<void> {
  await feeder.done
  while (killer.kills < kills || progress.lines < total || progress.moment !== 'visible') await sleep(50)
  await killer.finish()
  // An audit of what the pipeline keeps: the chain of epochs, its objects, the markers of the sink.
  await succeeded(startPawl(['verify', '--dir', directory]))
}

function cleanUp(): void {
  board.close()
  feeder.stop()
  killer.stop()
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
}
