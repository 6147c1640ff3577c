/**
 * The table, on the screen and in `docs/performance.md`.
 *
 * The page keeps what people wrote: only what stands between its two marks is replaced.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Figure } from './figures.ts'

const page = fileURLToPath(new URL('../docs/performance.md', import.meta.url))
/** What stands between the marks of a name is replaced. */
const marksOf = (name: string) => [`<!-- ${name} -->`, `<!-- end of ${name} -->`] as const

/** What the page says beside the table. */
export interface Report {
  readonly figures: readonly Figure[]
  /** Output of the parts, by their name. */
  readonly parts: readonly (readonly [name: string, output: string])[]
  readonly java: string
  readonly versions: string
  readonly command: string
  /** Load of the machine before each run, lowest and highest. */
  readonly loads: readonly string[]
  readonly minutes: number
  /** Runs, and those whose output was as it must be. */
  readonly runs: readonly [all: number, verified: number]
}

/** The table as text in columns. */
export function tableText(figures: readonly Figure[]): string {
  const rows = [header, ...figures.map(cells)]
  const widths = header.map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Writes the page. */
export function writePage(report: Report): void {
  writeBetween('measured', measured(report))
}

/** Replaces what stands between the marks of `name` on the page. */
export function writeBetween(name: string, text: string): void {
  const marks = marksOf(name)
  const before = readFileSync(page, 'utf8')
  const [from, to] = marks.map((mark) => before.indexOf(mark))
  if (from < 0 || to < from) throw new Error(`${page} lacks the marks of ${name}`)
  writeFileSync(page, `${before.slice(0, from)}${marks[0]}\n\n${text}\n${before.slice(to)}`)
}

function measured(report: Report): string {
  const { figures, parts, java, versions, command, loads, minutes, runs } = report
  const numbers = loads.map(Number).filter((load) => load >= 0)
  return [
    `Measured on ${today()} by \`${command}\` in ${minutes.toFixed(0)} minutes: ${machine()},`,
    `Linux, Node ${process.version}, ${java}, ${versions}. Load of the machine before the runs: ${Math.min(...numbers)} to ${Math.max(...numbers)}.`,
    `Output verified: ${runs[1]} of ${runs[0]} runs.`,
    '',
    markdown([header, header.map(() => '---'), ...figures.map(cells)]),
    '',
    ...parts.flatMap(([name, output]) => [`\`${name}\``, '', '```', output.trimEnd(), '```', '']),
  ].join('\n')
}

/** The day, as the page has it. */
export function today(): string {
  return new Date().toISOString().slice(0, 10)
}

/** The machine, as the page has it. */
export function machine(): string {
  const [cpu] = cpus()
  return `${cpus().length} × ${cpu.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GB`
}

const header = ['figure', 'unit', 'Flink', 'Streams', 'Pawl', 'Pawl : better peer', 'goal', 'reached']

function cells({ figure, unit, flink, streams, pawl, ratio, goal, reached }: Figure): string[] {
  const numbers = [flink, streams, pawl].map((value) => (value === null ? '–' : shown(value)))
  return [
    figure,
    unit,
    ...numbers,
    ratio === null ? '–' : `${ratio.toFixed(1)}×`,
    goal,
    reached === null ? '–' : reached ? 'yes' : 'no',
  ]
}

function shown(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '> 60000'
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(2)
}

/** Rows, the header and its rule first, as a table. */
export function markdown(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `| ${row.join(' | ')} |`).join('\n')
}
