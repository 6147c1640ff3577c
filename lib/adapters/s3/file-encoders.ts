/**
 * Encoders of files: rows in, bytes out, a bounded stretch at a time.
 *
 * `take` gives the bytes of the rows that came since the last time: whole lines, or a row group of Parquet. So no file
 * lies in memory as a whole. An encoder refuses a row before it keeps anything of it.
 */
import { PawlError } from '../../model/errors.ts'
import { type Cell, type CellMaker, cellBytes, cellMaker, type ParquetColumn } from '../shared/parquet-columns.ts'
import { loadParquetWriter, schemaElement } from '../shared/parquet-file.ts'
import { csvHeader, csvLineMaker, jsonLine, jsonLineMaker } from './file-text.ts'

/** What a file holds. */
export type FileFormat = 'json-lines' | 'csv' | 'parquet'

/** Endings of names. */
export const endings: Readonly<Record<FileFormat, string>> = { 'json-lines': 'jsonl', csv: 'csv', parquet: 'parquet' }

/** One row, checked and ready for any encoder of the format. */
export interface EncodedRow {
  readonly bytes: number
  /** A line, or cells. */
  readonly content: string | readonly Cell[]
}

/** One file under construction. */
export interface FileEncoder {
  /** Bytes of rows that were not taken yet; an estimate for Parquet. */
  readonly bufferedBytes: number
  add(row: EncodedRow): void
  /** The next bytes of the file; empty when there are no new rows. */
  take(): Buffer
  /** The last bytes. */
  finish(): Buffer
}

/** A format, ready to encode. */
export interface OpenFormat {
  /** Throws `ENCODE_FAILED`. */
  encode(row: unknown): EncodedRow
  open(): FileEncoder
}

/** Opens a format; loads what it needs. Throws `PACKAGE_MISSING`. */
export async function openFormat(format: FileFormat, columns: readonly ParquetColumn[] | null): Promise<OpenFormat> {
  if (format === 'parquet') return parquetFormat(columns ?? [])
  if (columns === null) return { encode: (row) => lineRow(jsonLine(row)), open: () => lineEncoder('') }
  const cellsOf = cellsMaker(columns)
  const line = format === 'csv' ? csvLineMaker(columns) : jsonLineMaker(columns)
  const header = format === 'csv' ? csvHeader(columns) : ''
  return { encode: (row) => lineRow(line(cellsOf(row))), open: () => lineEncoder(header) }
}

function lineRow(content: string): EncodedRow {
  return { bytes: Buffer.byteLength(content), content }
}

function lineEncoder(header: string): FileEncoder {
  let lines: string[] = header === '' ? [] : [header]
  let bufferedBytes = 0
  const take = () => {
    const bytes = Buffer.from(lines.join(''))
    lines = []
    bufferedBytes = 0
    return bytes
  }
  return {
    get bufferedBytes() {
      return bufferedBytes
    },
    add({ bytes, content }) {
      lines.push(content as string)
      bufferedBytes += bytes
    },
    take,
    finish: take,
  }
}

function cellsMaker(columns: readonly ParquetColumn[]): (row: unknown) => Cell[] {
  const names = columns.map(({ name }) => name)
  const makers: readonly CellMaker[] = columns.map(cellMaker)
  return (row) => {
    if (typeof row !== 'object' || row === null || Array.isArray(row)) {
      const what = row === null ? 'null' : Array.isArray(row) ? 'an array' : `a ${typeof row}`
      throw new PawlError('ENCODE_FAILED', `a row is ${what} in place of an object of columns`)
    }
    const members = row as Readonly<Record<string, unknown>>
    return makers.map((make, index) => make(members[names[index]!]))
  }
}

async function parquetFormat(columns: readonly ParquetColumn[]): Promise<OpenFormat> {
  const { ByteWriter, ParquetWriter } = await loadParquetWriter()
  const cellsOf = cellsMaker(columns)
  const schema = [{ name: 'root', num_children: columns.length }, ...columns.map(schemaElement)]
  return {
    encode(row) {
      const content = cellsOf(row)
      return { bytes: content.reduce<number>((sum, cell) => sum + cellBytes(cell), 0), content }
    },
    open() {
      const writer = new ByteWriter()
      return parquetEncoder(columns, writer, new ParquetWriter({ writer, schema, createdBy: 'pawl' }))
    },
  }
}

type Writer = Awaited<ReturnType<typeof loadParquetWriter>>

function parquetEncoder(
  columns: readonly ParquetColumn[],
  bytes: InstanceType<Writer['ByteWriter']>,
  file: InstanceType<Writer['ParquetWriter']>,
): FileEncoder {
  let cells: Cell[][] = columns.map(() => [])
  let bufferedBytes = 0
  /** What was written since; offsets in the file go on counting. */
  const drain = () => {
    const drained = Buffer.from(bytes.getBytes())
    bytes.index = 0
    return drained
  }
  const writeGroup = () => {
    const rows = cells[0]?.length ?? 0
    if (rows === 0) return
    file.write({
      columnData: columns.map(({ name }, index) => ({ name, data: cells[index]! })),
      rowGroupSize: rows,
    })
    cells = columns.map(() => [])
    bufferedBytes = 0
  }
  return {
    get bufferedBytes() {
      return bufferedBytes
    },
    add({ bytes: size, content }) {
      for (let i = 0; i < columns.length; i++) cells[i]!.push((content as readonly Cell[])[i]!)
      bufferedBytes += size
    },
    take() {
      writeGroup()
      return drain()
    },
    finish() {
      writeGroup()
      file.finish()
      return drain()
    },
  }
}
