/**
 * Writing one block of rows within a transaction, as multi-row statements.
 *
 * An upsert's rows are written in runs of puts and of deletes, in order, so that equality of keys is the
 * database's own; within a statement MySQL takes rows one by one, so the last of one key wins.
 */
import type { RowBlock } from '../shared/row-blocks.ts'
import type { TableForm } from '../shared/table-rows.ts'
import { cutAtParameters, filledIn, quoted, quotedColumns, quotedTable } from './text.ts'

/** Runs one statement. */
export type Run = (sql: string) => Promise<unknown>

/** Writes a block as its form says. */
export async function writeBlock(run: Run, form: TableForm, block: RowBlock): Promise<void> {
  const text = block.lines.toString('utf8', 0, block.lines.length - 1)
  if (form.mode === 'insert') await run(`${insertInto(form, block.columns)}${tuples(text)}`)
  else if (form.mode === 'sql') await runEach(run, form.sql ?? '', text)
  else for (const statement of upserts(form, block.columns, text)) await run(statement)
}

async function runEach(run: Run, sql: string, text: string): Promise<void> {
  const pieces = cutAtParameters(sql)
  for (const line of text.split('\n')) await run(filledIn(pieces, line === '' ? [] : line.split('\t')))
}

function insertInto({ table }: TableForm, columns: readonly string[]): string {
  return `INSERT INTO ${quotedTable(table)} (${quotedColumns(columns)}) VALUES `
}

/** Lines of cells as a list of tuples. */
function tuples(text: string): string {
  return `(${text.replaceAll('\t', ',').replaceAll('\n', '),(')})`
}

function* upserts(form: TableForm, columns: readonly string[], text: string): Iterable<string> {
  const { key } = form
  const others = columns.filter((name) => !key.includes(name))
  const updated = others.length === 0 ? [key[0]!] : others
  const update = updated.map((name) => `${quoted(name)} = VALUES(${quoted(name)})`).join(', ')
  for (const { deleted, lines } of runsOf(text)) {
    if (deleted) {
      const keys = lines.map((line) => line.split('\t', key.length).join('\t')).join('\n')
      yield `DELETE FROM ${quotedTable(form.table)} WHERE (${quotedColumns(key)}) IN (${tuples(keys)})`
    } else yield `${insertInto(form, columns)}${tuples(lines.join('\n'))} ON DUPLICATE KEY UPDATE ${update}`
  }
}

/** Lines that follow each other with the same mark, without their marks. */
function runsOf(text: string): { readonly deleted: boolean; readonly lines: string[] }[] {
  const runs: { deleted: boolean; lines: string[] }[] = []
  for (const line of text.split('\n')) {
    const deleted = line.startsWith('t')
    let run = runs.at(-1)
    if (run?.deleted !== deleted) {
      run = { deleted, lines: [] }
      runs.push(run)
    }
    run.lines.push(line.slice(2))
  }
  return runs
}
