/**
 * What the deployed pipelines of both weaker modes have in common: a target without marker or key, and its deaths.
 *
 * Functions share nothing with the test but topics, so each line carries all: the file to append to, its number, and
 * whether the process dies, once, before or after it has written the rows of which this line is one.
 */
import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { nullable, text, writeAhead } from 'pawl'

/** One line of input, as JSON. */
export interface FatefulLine {
  readonly n: number
  /** The target. */
  readonly file: string
  readonly dies?: 'before' | 'after'
}

function dieOnce({ n, file }: FatefulLine): void {
  const grave = `${file}.${n}.died`
  if (existsSync(grave)) return
  writeFileSync(grave, '')
  process.kill(process.pid, 'SIGKILL')
}

/** Appends numbers to files. */
export const target = writeAhead<string, string | null>({
  key: nullable(text()),
  value: text(),
  async write(rows) {
    const lines = rows.map(({ value }) => JSON.parse(value ?? '') as FatefulLine)
    for (const line of lines) if (line.dies === 'before') dieOnce(line)
    for (const { n, file } of lines) appendFileSync(file, `${n}\n`)
    for (const line of lines) if (line.dies === 'after') dieOnce(line)
  },
})
