/**
 * A table's schema and what it has to do with the columns of a sink.
 *
 * A table is created with the sink's columns. Later columns of the sink are added to it, as nullable ones, in the log
 * entry that brings their first rows. Whatever cannot be added without changing what readers see is refused with
 * `SINK_SCHEMA_INVALID`, which names the column: the pipeline parks and goes on when the table is mended. Source: the
 * Delta protocol, "Schema Serialization Format", "Column Invariants", "Writer Version Requirements".
 */
import { PawlError } from '../../model/errors.ts'
import type { ParquetColumn } from '../shared/parquet-columns.ts'
import type { MetaData, Protocol } from './actions.ts'

/** What a sink writes: its columns, and which of them lie in the log in place of the files. */
export interface TableForm {
  readonly columns: readonly ParquetColumn[]
  readonly partitionBy: readonly string[]
}

interface Field {
  readonly name: string
  readonly type: unknown
  readonly nullable: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Versions that a table of ours has: the oldest that there are. */
export const ourProtocol: Protocol = Object.freeze({ minReaderVersion: 1, minWriterVersion: 2 })

/** Features of writer version 7 that writer version 2 has too. */
const knownFeatures = new Set(['appendOnly', 'invariants'])

/** Metadata of a new table. */
export function newMetaData(form: TableForm, id: string, createdTime: number): MetaData {
  return {
    id,
    format: { provider: 'parquet', options: {} },
    schemaString: JSON.stringify({ type: 'struct', fields: form.columns.map(fieldOf) }),
    partitionColumns: form.partitionBy,
    createdTime,
    configuration: {},
  }
}

const sqlNames: Readonly<Record<string, string>> = { long: 'BIGINT', integer: 'INT' }

/** The table as a person would make it in an engine that speaks SQL. */
export function createTableSql({ columns, partitionBy }: TableForm, location: string): string {
  const quoted = (name: string) => `\`${name.replaceAll('`', '``')}\``
  const lines = columns.map((column) => {
    const type = deltaType(column)
    return `  ${quoted(column.name)} ${sqlNames[type] ?? type.toUpperCase()}${column.nullable ? '' : ' NOT NULL'}`
  })
  const partitions = partitionBy.length === 0 ? '' : ` PARTITIONED BY (${partitionBy.map(quoted).join(', ')})`
  return `CREATE TABLE IF NOT EXISTS delta.${quoted(location)} (\n${lines.join(',\n')}\n) USING DELTA${partitions}`
}

/** Refuses a table that asks for more than appending to it as version 2 does. Throws `SINK_SCHEMA_INVALID`. */
export function assertProtocol(protocol: Protocol, location: string): void {
  const { minReaderVersion: reader, minWriterVersion: writer, readerFeatures, writerFeatures } = protocol
  const features = [...new Set([...(readerFeatures ?? []), ...(writerFeatures ?? [])])]
  const beyond = features.filter((feature) => !knownFeatures.has(feature))
  if (beyond.length === 0 && (reader === 1 || reader === 3) && (writer <= 2 || writer === 7)) return
  const fault = `asks for reader version ${reader}, writer version ${writer}${beyond.length > 0 ? ` and ${beyond.join(', ')}` : ''}; Pawl writes tables of reader version 1, writer version 2`
  throw schemaFault(location, fault)
}

/** Metadata with the columns that the table lacks; null when it lacks none. Throws `SINK_SCHEMA_INVALID`. */
export function evolved(metaData: MetaData, form: TableForm, location: string): MetaData | null {
  const fields = fieldsOf(metaData, location)
  if (metaData.format.provider !== 'parquet') throw schemaFault(location, `has files of ${metaData.format.provider}`)
  const partitions = metaData.partitionColumns
  if (partitions.join('\0') !== form.partitionBy.join('\0')) {
    throw schemaFault(
      location,
      `is partitioned by [${partitions.join(', ')}], the sink by [${form.partitionBy.join(', ')}]`,
    )
  }
  const known = new Map(fields.map((field) => [field.name.toLowerCase(), field]))
  const added = form.columns.filter((column) => {
    const field = known.get(column.name.toLowerCase())
    if (field !== undefined) assertSame(column, field, location)
    return field === undefined
  })
  assertComplete(fields, form, location)
  if (added.length === 0) return null
  for (const { name, nullable } of added) {
    if (!nullable)
      throw schemaFault(location, `has no column ${name}, and rows that are there have no value for it`, name)
  }
  return { ...metaData, schemaString: JSON.stringify({ type: 'struct', fields: [...fields, ...added.map(fieldOf)] }) }
}

function fieldsOf({ schemaString }: MetaData, location: string): readonly Field[] {
  try {
    return (JSON.parse(schemaString) as { readonly fields: readonly Field[] }).fields
  } catch (error) {
    throw new PawlError('DELTA_LOG_DAMAGED', `${location}: the schema is not readable`, { table: location }, error)
  }
}

function assertSame(column: ParquetColumn, field: Field, location: string): void {
  const { name } = column
  const refuse = (fault: string) => schemaFault(location, fault, name)
  const type = deltaType(column)
  if (field.name !== name) throw refuse(`has a column ${field.name}, which differs from ${name} in case`)
  if (field.type !== type) {
    throw refuse(`has column ${name} as ${JSON.stringify(field.type)}, the sink writes ${JSON.stringify(type)}`)
  }
  if (!field.nullable && column.nullable) throw refuse(`holds no null in column ${name}, the sink may write one`)
}

function assertComplete(fields: readonly Field[], { columns }: TableForm, location: string): void {
  const written = new Set(columns.map(({ name }) => name))
  for (const { name, nullable, metadata = {} } of fields) {
    if (!written.has(name) && !nullable)
      throw schemaFault(location, `holds no null in column ${name}, which the sink does not write`, name)
    const invariant = metadata['delta.invariants']
    if (invariant !== undefined)
      throw schemaFault(location, `has an invariant on column ${name}, which Pawl does not check`, name)
  }
}

function fieldOf(column: ParquetColumn): Field {
  return { name: column.name, type: deltaType(column), nullable: column.nullable, metadata: {} }
}

/** The name of a column's type in a table's schema. */
export function deltaType({ type }: ParquetColumn): string {
  return type === 'json' ? 'string' : type
}

function schemaFault(location: string, fault: string, column?: string): PawlError {
  const details = { table: location, reason: fault, ...(column === undefined ? {} : { column }) }
  return new PawlError('SINK_SCHEMA_INVALID', `table ${location} ${fault}`, details)
}
