/**
 * A region at the bottom of a terminal that is drawn in place, with lines that scroll by above it.
 *
 * Each drawing is one write between the marks of a synchronized update, and no line is erased before it is written
 * again: nothing flickers. The cursor is hidden in the meantime and comes back in `close`.
 */
import type { Output } from './write-output.ts'

/** The region of one command. */
export interface Live {
  /** Draws the region again; lines must not be wider than the terminal. */
  draw(lines: readonly string[]): void
  /** Prints a line for good, above the region. */
  print(line: string): void
  /** Leaves the last drawing where it is and gives the cursor back. */
  close(): void
}

/** The marks of a synchronized update. */
const begin = '\x1b[?2026h'
const end = '\x1b[?2026l'
/** A line of the region that is too wide after all is cut: a wrapped one would be counted wrongly. */
const noWrap = '\x1b[?7l'
const wrap = '\x1b[?7h'
const hideCursor = '\x1b[?25l'
const showCursor = '\x1b[?25h'

/** Opens a region where the cursor is. */
export function liveRegion(output: Pick<Output, 'raw'>): Live {
  let shown: readonly string[] = []
  let open = true
  const restore = () => {
    if (open) output.raw(showCursor)
    open = false
  }
  process.once('exit', restore)
  output.raw(hideCursor)
  const whole = (lines: readonly string[]) => lines.map((line) => `${line}\x1b[K\n`).join('')
  const paint = (above: readonly string[], lines: readonly string[]) => {
    const up = shown.length === 0 ? '' : `\x1b[${shown.length}A`
    output.raw(`${begin}${up}\r${whole(above)}${noWrap}${whole(lines)}\x1b[J${wrap}${end}`)
    shown = lines
  }
  return {
    draw: (lines) => paint([], lines),
    print: (line) => paint([line], shown),
    close() {
      restore()
      process.removeListener('exit', restore)
    },
  }
}
