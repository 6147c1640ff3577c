/**
 * Reading the checkpoints of a log, whoever wrote them: classic ones and those in parts.
 *
 * `hyparquet`, an optional peer, is loaded when the first checkpoint is met. Columns that are not asked for are not
 * decoded, so that the state of a table costs little however many files it has. Source: the Delta protocol,
 * "Checkpoint Schema".
 */
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import { PawlError } from '../../model/errors.ts'
import type { TableFiles } from '../shared/table-files.ts'
import { type Action, type ActionKind, logFolder } from './actions.ts'
import type { ListedCheckpoint } from './log-listing.ts'

type Reader = typeof import('hyparquet')

let loaded: Promise<Reader> | null = null

function loadReader(): Promise<Reader> {
  loaded ??= import('hyparquet').catch((error: unknown) => {
    loaded = null
    throw new PawlError('PACKAGE_MISSING', 'hyparquet', { package: 'hyparquet' }, error)
  })
  return loaded
}

/** Beside Snappy, which the reader knows. */
const compressors = {
  GZIP: (bytes: Uint8Array) => gunzipSync(bytes),
  ZSTD: (bytes: Uint8Array) => zstdDecompressSync(bytes),
  BROTLI: (bytes: Uint8Array) => brotliDecompressSync(bytes),
}

type Row = Readonly<Partial<Record<ActionKind, Readonly<Record<string, unknown>> | null>>>

/** The actions of these kinds; null when a file of the checkpoint is gone. Throws `DELTA_LOG_DAMAGED`. */
export async function readCheckpoint(
  files: TableFiles,
  checkpoint: ListedCheckpoint,
  kinds: ReadonlySet<ActionKind>,
): Promise<Action[] | null> {
  const actions: Action[] = []
  for (const name of checkpoint.files) {
    const bytes = await files.read(`${logFolder}/${name}`)
    if (bytes === null) return null
    const reader = await loadReader()
    try {
      for (const row of await rowsOf(reader, bytes, kinds)) actions.push(...actionsOf(row))
    } catch (error) {
      const fault = `${files.location}: checkpoint ${name} is not readable`
      throw new PawlError('DELTA_LOG_DAMAGED', fault, { table: files.location, file: name }, error)
    }
  }
  return actions
}

async function rowsOf(reader: Reader, bytes: Buffer, kinds: ReadonlySet<ActionKind>): Promise<readonly Row[]> {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
  const metadata = reader.parquetMetadata(file)
  const columns = reader
    .parquetSchema(metadata)
    .children.map(({ element }) => element.name)
    .filter((name) => kinds.has(name as ActionKind))
  return (await reader.parquetReadObjects({ file, metadata, columns, compressors })) as readonly Row[]
}

/** A row holds one action; longs come as bigints and stay so only where they are identifiers. */
function* actionsOf(row: Row): Iterable<Action> {
  for (const [kind, found] of Object.entries(row)) {
    if (found === null || found === undefined) continue
    const fields = Object.fromEntries(
      Object.entries(found).map(([name, value]) => {
        const exact = kind === 'txn' && name === 'version'
        return [name, typeof value === 'bigint' && !exact ? Number(value) : value]
      }),
    )
    yield { [kind]: fields } as unknown as Action
  }
}
