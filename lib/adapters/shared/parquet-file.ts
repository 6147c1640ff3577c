/**
 * Parquet files of flat columns, made in memory by `hyparquet-writer`, an optional peer that is loaded when first used.
 *
 * One row group a file: files are as large as what an invocation buffers. Pages are compressed with Snappy, which every
 * reader knows. Decimals are stored as 32 or 64 bits where they fit, else as 16 bytes; timestamps as microseconds in
 * UTC. Source: logical types of the Parquet format; the Delta protocol, "Delta Data Type to Parquet Type
 * Mappings".
 */
import { PawlError } from '../../model/errors.ts'
import { type Cell, decimalDigits, type ParquetColumn } from './parquet-columns.ts'

type Writer = typeof import('hyparquet-writer')
/** A column of the file's schema, as `hyparquet-writer` takes it. */
export type SchemaElement = import('hyparquet-writer').SchemaElement

let loaded: Promise<Writer> | null = null

/** Loads the package once. Throws `PACKAGE_MISSING`. */
export function loadParquetWriter(): Promise<Writer> {
  loaded ??= import('hyparquet-writer').catch((error: unknown) => {
    loaded = null
    throw new PawlError('PACKAGE_MISSING', 'hyparquet-writer', { package: 'hyparquet-writer' }, error)
  })
  return loaded
}

/** The file of these cells: one array a column, in the order of the columns, all of one length. */
export function parquetFile(
  writer: Writer,
  columns: readonly ParquetColumn[],
  cells: readonly (readonly Cell[])[],
): Buffer {
  const rows = cells[0]?.length ?? 0
  const made = writer.parquetWriteBuffer({
    schema: [{ name: 'root', num_children: columns.length }, ...columns.map(schemaElement)],
    columnData: columns.map(({ name }, index) => ({ name, data: cells[index] as Cell[] })),
    rowGroupSize: Math.max(1, rows),
    createdBy: 'pawl',
  })
  return Buffer.from(made)
}

/** What the schema of a file says of a column. */
export function schemaElement({ name, type, nullable }: ParquetColumn): SchemaElement {
  const element = { name, repetition_type: nullable ? 'OPTIONAL' : 'REQUIRED' } as const
  const digits = decimalDigits(type)
  if (digits !== null) {
    const physical = digits.precision <= 9 ? 'INT32' : digits.precision <= 18 ? 'INT64' : 'FIXED_LEN_BYTE_ARRAY'
    const length = physical === 'FIXED_LEN_BYTE_ARRAY' ? { type_length: 16 } : {}
    return { ...element, type: physical, ...length, converted_type: 'DECIMAL', ...digits }
  }
  switch (type) {
    case 'integer':
      return { ...element, type: 'INT32' }
    case 'long':
      return { ...element, type: 'INT64' }
    case 'double':
      return { ...element, type: 'DOUBLE' }
    case 'boolean':
      return { ...element, type: 'BOOLEAN' }
    case 'binary':
      return { ...element, type: 'BYTE_ARRAY' }
    case 'date':
      return { ...element, type: 'INT32', converted_type: 'DATE' }
    case 'timestamp': {
      const logical = { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' } as const
      return { ...element, type: 'INT64', converted_type: 'TIMESTAMP_MICROS', logical_type: logical }
    }
    default:
      return { ...element, type: 'BYTE_ARRAY', converted_type: 'UTF8' }
  }
}
