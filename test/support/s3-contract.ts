/**
 * The sink contract against files in a bucket: rows are what a reader finds who goes by the lists of whole epochs.
 */
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { parquetReadObjects } from 'hyparquet'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import type { FileFormat } from '../../lib/adapters/s3/file-encoders.ts'
import { markersFolder } from '../../lib/adapters/s3/file-form.ts'
import { type S3FilesOptions, s3Files } from '../../lib/adapters/s3/files.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
  type VisibleRow,
} from '../../lib/testing/contracts/sink-subject.ts'
import type { Emulator } from './aws-emulator.ts'
import { freshBucket } from './aws-places.ts'
import { stagingControls } from './table-contract.ts'

/** A bucket as a test sees it. */
export interface BucketView {
  readonly client: S3Client
  readonly name: string
  keys(prefix?: string): Promise<string[]>
  read(key: string): Promise<Buffer>
  put(key: string, body: Buffer): Promise<void>
  remove(key: string): Promise<void>
}

export async function bucketView(emulator: Emulator, name?: string): Promise<BucketView> {
  const Bucket = name ?? (await freshBucket(emulator))
  const client = new S3Client({ ...emulator.client, forcePathStyle: true })
  return {
    client,
    name: Bucket,
    async keys(Prefix = '') {
      const keys: string[] = []
      for (let token: string | undefined, more = true; more; ) {
        const page = await client.send(new ListObjectsV2Command({ Bucket, Prefix, ContinuationToken: token }))
        keys.push(...(page.Contents ?? []).map(({ Key = '' }) => Key))
        token = page.NextContinuationToken
        more = page.IsTruncated === true
      }
      return keys.sort()
    },
    async read(Key) {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }))
      return Buffer.from((await Body?.transformToByteArray()) ?? [])
    },
    put: async (Key, Body) => void (await client.send(new PutObjectCommand({ Bucket, Key, Body }))),
    remove: async (Key) => void (await client.send(new DeleteObjectCommand({ Bucket, Key }))),
  }
}

/** What a list of files says. */
export interface FileList {
  readonly epoch: number
  readonly lane: number
  readonly rows: number
  readonly files: readonly { readonly name: string; readonly rows: number; readonly bytes: number }[]
}

/** The lists of whole epochs, by epoch, then lane. */
export async function fileLists(view: BucketView, prefix: string): Promise<FileList[]> {
  const keys = await view.keys(`${prefix}_manifest/`)
  const lists = await Promise.all(keys.map(async (key) => JSON.parse((await view.read(key)).toString()) as FileList))
  return lists.sort((a, b) => a.epoch - b.epoch || a.lane - b.lane)
}

/** Fields of CSV: null for nothing, text for the rest. */
export function parseCsv(text: string): (string | null)[][] {
  const rows: (string | null)[][] = []
  let row: (string | null)[] = []
  for (const [, quoted, plain = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(quoted !== undefined ? quoted.replaceAll('""', '"') : plain === '' ? null : plain)
    if (end === '\r\n') {
      rows.push(row)
      row = []
    }
  }
  return rows
}

/** Rows of a file of any format. */
export async function readRows(bytes: Buffer, format: FileFormat): Promise<Record<string, unknown>[]> {
  if (format === 'parquet') {
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
    return parquetReadObjects({ file })
  }
  if (format === 'json-lines') {
    const lines = bytes.toString().split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  }
  const [header, ...rows] = parseCsv(bytes.toString())
  return rows.map((row) => Object.fromEntries(header!.map((name, index) => [name!, row[index]])))
}

/** A place for one case. */
export async function freshFiles(
  emulator: Emulator,
  format: FileFormat,
  client = emulator.client,
  more: Pick<SinkControls, 'disturb'> = {},
) {
  const view = await bucketView(emulator)
  const prefix = 'a/rows/'
  const store = memoryStore()
  const options: S3FilesOptions<unknown, unknown> = {
    ...client,
    forcePathStyle: true,
    bucket: view.name,
    prefix,
    format,
    lanes: contractLanes,
    columns: { k: 'string', v: 'string', ts: 'long' },
    row: (value, key, timestampMs) => ({ k: key, v: contractRowSpec.value.encode(value), ts: timestampMs }),
  }
  const opened: Sink[] = []
  const controls: SinkControls = { ...controlsOf(view, prefix, format), ...stagingControls(store), ...more }
  const over = async (other: Store) => {
    const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store: other }
    const sink = await s3Files(options).open('rows', context)
    opened.push(sink)
    return sink
  }
  return {
    async open(): Promise<SinkSubject> {
      return { sink: await over(store), store, controls, over }
    },
    async dispose() {
      for (const sink of opened) await sink.close()
      view.client.destroy()
    },
  }
}

function controlsOf(view: BucketView, prefix: string, format: FileFormat) {
  return {
    async visible() {
      const rows: VisibleRow[] = []
      for (const { files } of await fileLists(view, prefix)) {
        for (const { name } of files) {
          for (const { k, v, ts } of await readRows(await view.read(prefix + name), format)) {
            rows.push({ key: k as string | null, value: v as string | null, timestampMs: Number(ts) })
          }
        }
      }
      return rows
    },
    async backup() {
      const before = new Map<string, Buffer>()
      for (const key of await view.keys()) before.set(key, await view.read(key))
      return async () => {
        for (const key of await view.keys()) await view.remove(key)
        for (const [key, bytes] of before) await view.put(key, bytes)
      }
    },
    dropMarker: (lane: number) => view.remove(`${prefix}${markersFolder('test', 'p', 'rows')}${lane}`),
  }
}
