/**
 * Writing a checkpoint: the whole state of a table in one Parquet file, so that readers need not replay every entry.
 *
 * A classic checkpoint of version 1, which every writer may make and every reader can read. It holds what is still true:
 * protocol, metadata, the newest of each transaction, live files, and removed ones until a clean-up may take them.
 * Source: the Delta protocol, "Checkpoints", "Checkpoint Schema", "Last Checkpoint File Schema".
 */
import { loadParquetWriter, type SchemaElement } from '../shared/parquet-file.ts'
import type { TableFiles } from '../shared/table-files.ts'
import {
  type Action,
  type ActionKind,
  type Add,
  checkpointName,
  lastCheckpointName,
  type MetaData,
  type Protocol,
  type Remove,
  type Txn,
} from './actions.ts'
import { hintedVersion, replay } from './log-replay.ts'

/** Files of a table above which its checkpoints are left to the engines that maintain it. */
const actionsMax = 500_000

/** Everything that a checkpoint holds. */
interface TableContent {
  protocol: Protocol | null
  metaData: MetaData | null
  readonly txns: Map<string, Txn>
  readonly adds: Map<string, Add>
  readonly removes: Map<string, Remove>
}

const allKinds: ReadonlySet<ActionKind> = new Set<ActionKind>(['protocol', 'metaData', 'txn', 'add', 'remove'])

/**
 * Writes a checkpoint of the newest version, and the hint that leads to it. One that is there already is as good.
 * `nowMs` decides which removed files are past their retention.
 */
export async function writeCheckpoint(files: TableFiles, nowMs: number): Promise<void> {
  const { version, actions } = await replay(files, allKinds)
  const content = contentOf(actions)
  if (content.protocol === null || content.metaData === null || actions.length > actionsMax) return
  dropExpired(content, nowMs)
  const rows = rowsOf(content)
  const { parquetWriteBuffer } = await loadParquetWriter()
  const columns = kindsInFile.map((kind) => ({ name: kind, data: rows.map((row) => (row[kind] ?? null) as object) }))
  const bytes = Buffer.from(parquetWriteBuffer({ schema, columnData: columns, createdBy: 'pawl' }))
  await files.create(checkpointName(version), bytes)
  if (((await hintedVersion(files)) ?? -1) >= version) return
  const hint = { version, size: rows.length, sizeInBytes: bytes.length, numOfAddFiles: content.adds.size }
  await files.replace(lastCheckpointName, Buffer.from(JSON.stringify(hint)))
}

function contentOf(actions: readonly Action[]): TableContent {
  const content: TableContent = { protocol: null, metaData: null, txns: new Map(), adds: new Map(), removes: new Map() }
  for (const action of actions) {
    if ('protocol' in action) content.protocol = action.protocol
    else if ('metaData' in action) content.metaData = action.metaData
    else if ('txn' in action) content.txns.set(action.txn.appId, action.txn)
    else if ('add' in action) {
      content.adds.set(action.add.path, action.add)
      content.removes.delete(action.add.path)
    } else if ('remove' in action) {
      content.removes.set(action.remove.path, action.remove)
      content.adds.delete(action.remove.path)
    }
  }
  return content
}

const weekMs = 7 * 86_400_000
const unitsMs: Readonly<Record<string, number>> = {
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: weekMs,
}

/** How long removed files are remembered; for ever when the table says it in words that are not understood. */
function retentionMs({ configuration }: MetaData): number {
  const said = configuration['delta.deletedFileRetentionDuration']
  if (said === undefined) return weekMs
  const [, count, unit = ''] = /^(?:interval\s+)?(\d+)\s+(\w+?)s?$/i.exec(said.trim()) ?? []
  const unitMs = unitsMs[unit.toLowerCase()]
  return unitMs === undefined ? Number.POSITIVE_INFINITY : Number(count) * unitMs
}

function dropExpired({ metaData, removes }: TableContent, nowMs: number): void {
  const keepMs = metaData === null ? Number.POSITIVE_INFINITY : retentionMs(metaData)
  for (const [path, { deletionTimestamp }] of removes)
    if (nowMs - (deletionTimestamp ?? 0) > keepMs) removes.delete(path)
}

const kindsInFile = ['protocol', 'metaData', 'txn', 'add', 'remove'] as const

type Row = Partial<Record<(typeof kindsInFile)[number], object>>

function rowsOf({ protocol, metaData, txns, adds, removes }: TableContent): Row[] {
  const long = (value: number | null | undefined) => (typeof value === 'number' ? BigInt(value) : null)
  const rows: Row[] = [
    { protocol: protocol ?? {} },
    { metaData: { ...metaData, createdTime: long(metaData?.createdTime) } },
  ]
  for (const txn of txns.values()) rows.push({ txn: { ...txn, lastUpdated: long(txn.lastUpdated) } })
  for (const add of adds.values()) {
    const { path, partitionValues, size, modificationTime, stats, tags } = add
    const numbers = { size: long(size), modificationTime: long(modificationTime) }
    rows.push({ add: { path, partitionValues, ...numbers, dataChange: false, stats, tags } })
  }
  for (const remove of removes.values()) {
    const { path, deletionTimestamp, extendedFileMetadata, partitionValues, size } = remove
    const numbers = { size: long(size), deletionTimestamp: long(deletionTimestamp) }
    rows.push({ remove: { path, ...numbers, dataChange: false, extendedFileMetadata, partitionValues } })
  }
  return rows
}

type Fields = readonly (readonly SchemaElement[])[]

const group = (name: string, ...fields: Fields): SchemaElement[] => [
  { name, repetition_type: 'OPTIONAL', num_children: fields.length },
  ...fields.flat(),
]
const required = (name: string, ...fields: Fields): SchemaElement[] => {
  const [head, ...rest] = group(name, ...fields)
  return [{ ...head, name, repetition_type: 'REQUIRED' }, ...rest]
}
const leaf = (name: string, type: 'INT32' | 'INT64' | 'BOOLEAN', needed = false): SchemaElement[] => [
  { name, type, repetition_type: needed ? 'REQUIRED' : 'OPTIONAL' },
]
const text = (name: string, needed = false): SchemaElement[] => [
  { name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: needed ? 'REQUIRED' : 'OPTIONAL' },
]
const map = (name: string, needed = false): SchemaElement[] => [
  { name, num_children: 1, converted_type: 'MAP', repetition_type: needed ? 'REQUIRED' : 'OPTIONAL' },
  { name: 'key_value', num_children: 2, repetition_type: 'REPEATED' },
  ...text('key', true),
  ...text('value'),
]
const list = (name: string, needed = false): SchemaElement[] => [
  { name, num_children: 1, converted_type: 'LIST', repetition_type: needed ? 'REQUIRED' : 'OPTIONAL' },
  { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
  ...text('element', true),
]

const schema: SchemaElement[] = [
  { name: 'root', num_children: kindsInFile.length },
  ...group(
    'protocol',
    leaf('minReaderVersion', 'INT32', true),
    leaf('minWriterVersion', 'INT32', true),
    list('readerFeatures'),
    list('writerFeatures'),
  ),
  ...group(
    'metaData',
    text('id', true),
    text('name'),
    text('description'),
    required('format', text('provider', true), map('options', true)),
    text('schemaString', true),
    list('partitionColumns', true),
    leaf('createdTime', 'INT64'),
    map('configuration', true),
  ),
  ...group('txn', text('appId', true), leaf('version', 'INT64', true), leaf('lastUpdated', 'INT64')),
  ...group(
    'add',
    text('path', true),
    map('partitionValues', true),
    leaf('size', 'INT64', true),
    leaf('modificationTime', 'INT64', true),
    leaf('dataChange', 'BOOLEAN', true),
    text('stats'),
    map('tags'),
  ),
  ...group(
    'remove',
    text('path', true),
    leaf('deletionTimestamp', 'INT64'),
    leaf('dataChange', 'BOOLEAN', true),
    leaf('extendedFileMetadata', 'BOOLEAN'),
    map('partitionValues'),
    leaf('size', 'INT64'),
  ),
]
