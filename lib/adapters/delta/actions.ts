/**
 * Actions of a Delta log, and the files that hold them.
 *
 * Only what a writer that appends must know is typed here; everything else in an action is kept as it came. Source:
 * the Delta protocol, "Actions" and "Delta Log Entries". Numbers that identify transactions are int64 and stay exact.
 */

/** Versions that a table asks of its readers and writers. */
export interface Protocol {
  readonly minReaderVersion: number
  readonly minWriterVersion: number
  readonly readerFeatures?: readonly string[] | null
  readonly writerFeatures?: readonly string[] | null
}

/** Schema and properties of a table. */
export interface MetaData {
  readonly id: string
  readonly name?: string | null
  readonly description?: string | null
  readonly format: { readonly provider: string; readonly options: Readonly<Record<string, string>> }
  /** JSON of the schema. */
  readonly schemaString: string
  readonly partitionColumns: readonly string[]
  readonly createdTime?: number | null
  readonly configuration: Readonly<Record<string, string>>
}

/** How far an application got; the newest of an `appId` counts, checkpoints keep it. */
export interface Txn {
  readonly appId: string
  readonly version: bigint
  readonly lastUpdated?: number | null
}

/** A data file that belongs to the table. */
export interface Add {
  /** Relative to the table, percent-encoded. */
  readonly path: string
  readonly partitionValues: Readonly<Record<string, string | null>>
  readonly size: number
  readonly modificationTime: number
  readonly dataChange: boolean
  /** JSON. */
  readonly stats?: string | null
  readonly tags?: Readonly<Record<string, string | null>> | null
}

/** A data file that does so no more. */
export interface Remove {
  readonly path: string
  readonly deletionTimestamp?: number | null
  readonly dataChange: boolean
  readonly extendedFileMetadata?: boolean | null
  readonly partitionValues?: Readonly<Record<string, string | null>> | null
  readonly size?: number | null
}

/** One line of a log entry. */
export type Action =
  | { readonly protocol: Protocol }
  | { readonly metaData: MetaData }
  | { readonly txn: Txn }
  | { readonly add: Add }
  | { readonly remove: Remove }
  | { readonly commitInfo: object }

/** The folder of the log. */
export const logFolder = '_delta_log'

/** The number of a version as names of the log begin. */
export function versionDigits(version: number): string {
  return String(version).padStart(20, '0')
}

/** The log entry of a version. */
export function entryName(version: number): string {
  return `${logFolder}/${versionDigits(version)}.json`
}

/** The classic checkpoint of a version. */
export function checkpointName(version: number): string {
  return `${logFolder}/${versionDigits(version)}.checkpoint.parquet`
}

/** The hint where the newest checkpoint is. */
export const lastCheckpointName = `${logFolder}/_last_checkpoint`

/** A log entry: an action a line. */
export function entryBytes(actions: readonly Action[]): Buffer {
  return Buffer.from(actions.map((action) => `${actionText(action)}\n`).join(''))
}

/** JSON has no bigint, and most readers no text for a long. */
function actionText(action: Action): string {
  if (!('txn' in action)) return JSON.stringify(action)
  const { appId, version, lastUpdated } = action.txn
  const updated = typeof lastUpdated === 'number' ? `,"lastUpdated":${lastUpdated}` : ''
  return `{"txn":{"appId":${JSON.stringify(appId)},"version":${version}${updated}}}`
}

/** Kinds of actions that a reading is for. */
export type ActionKind = 'protocol' | 'metaData' | 'txn' | 'add' | 'remove' | 'commitInfo'

const kindForm = /^\s*\{\s*"(\w+)"/
const versionForm = /"version"\s*:\s*(-?\d+)/

/** The actions of an entry that are of these kinds; a line of another kind is not even parsed. */
export function parseEntry(bytes: Buffer, kinds: ReadonlySet<ActionKind>): Action[] {
  const actions: Action[] = []
  for (const line of bytes.toString().split('\n')) {
    const kind = kindForm.exec(line)?.[1] as ActionKind | undefined
    if (kind === undefined || !kinds.has(kind)) continue
    const action = JSON.parse(line) as Action
    // JSON.parse would round it.
    if ('txn' in action) {
      const { appId, version, lastUpdated } = action.txn
      const exact = Number.isSafeInteger(version) ? BigInt(version) : BigInt(versionForm.exec(line)?.[1] ?? 0)
      actions.push({ txn: { appId, version: exact, lastUpdated } })
    } else actions.push(action)
  }
  return actions
}
