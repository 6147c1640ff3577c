/**
 * `npm run guarantees`: runs the table of guarantees and writes it into `docs/guarantees.md`.
 *
 * Only what lies between the markers is generated; the simulation compares it with what it runs.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { type Cell, columns, guaranteeOf, runCell, type SinkKind, sinkKinds } from '../test/support/guarantee-cells.ts'

/** Cells by sink and column. */
export type Table = ReadonlyMap<SinkKind, readonly Cell[]>

const page = new URL('../docs/guarantees.md', import.meta.url)
const marks = ['<!-- guarantees: made by `npm run guarantees` -->\n', '<!-- end of guarantees -->'] as const

const titles: Readonly<Record<SinkKind, string>> = {
  any: 'any, without marker or key',
  idempotent: 'idempotent by key',
  'write-ahead': '`writeAhead`',
  transactional: 'transactional: rows and marker in one step',
}

/** Runs every cell. */
export async function runTable(): Promise<Table> {
  const table = new Map<SinkKind, Cell[]>()
  for (const kind of sinkKinds) {
    const cells: Cell[] = []
    for (const column of columns) cells.push(await runCell(kind, column))
    table.set(kind, cells)
  }
  return table
}

/** The table in Markdown. */
export function tableText(table: Table): string {
  const head = ['sink', ...columns.map(({ title }) => title)]
  const rows = [...table].map(([kind, cells]) => [titles[kind], ...cells.map(cellText)])
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('')
}

function cellText(cell: Cell): string {
  const seen = [
    ...(cell.losses ? ['losses'] : []),
    ...(cell.repeats ? ['repeats'] : []),
    ...(cell.older ? ['older values for a moment'] : []),
  ]
  return `**${guaranteeOf(cell)}**${seen.length === 0 ? '' : `; seen: ${seen.join(', ')}`}`
}

/** What the page has between its markers, and the page with something else there. */
export function generatedPart(text = readFileSync(page, 'utf8')): { part: string; replaced(part: string): string } {
  const start = text.indexOf(marks[0]) + marks[0].length
  const end = text.indexOf(marks[1])
  return { part: text.slice(start, end), replaced: (part) => text.slice(0, start) + part + text.slice(end) }
}

if (import.meta.main) {
  const text = tableText(await runTable())
  writeFileSync(page, generatedPart().replaced(text))
  process.stdout.write(text)
}
