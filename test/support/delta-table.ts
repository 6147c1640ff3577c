/**
 * A Delta table seen from outside, on disk or in a bucket: all of its files, and its rows by a log that is read plainly.
 *
 * Shares no code with the sink. Rows come in the order in which the log added their files, which Delta does not promise
 * to readers, but which the contract asks for.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { parquetReadObjects } from 'hyparquet'
import type { EmulatorClientOptions } from './aws-emulator.ts'

/** All files of a table, by their names in it. */
export interface SeenTable {
  /** As the sink's option `table` takes it. */
  readonly table: string
  names(): Promise<string[]>
  read(name: string): Promise<Buffer>
  write(name: string, bytes: Uint8Array): Promise<void>
  remove(name: string): Promise<void>
  dispose(): Promise<void>
}

/** A fresh directory for a table. */
export function diskTable(): SeenTable & { readonly directory: string } {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-delta-'))
  const table = join(directory, 'table')
  return {
    table,
    directory,
    async names() {
      const all = readdirSync(table, { recursive: true, encoding: 'utf8' })
      return all.filter((name) => statSync(join(table, name)).isFile()).sort()
    },
    read: async (name) => readFileSync(join(table, name)),
    async write(name, bytes) {
      mkdirSync(dirname(join(table, name)), { recursive: true })
      writeFileSync(join(table, name), bytes)
    },
    remove: async (name) => rmSync(join(table, name)),
    dispose: async () => rmSync(directory, { recursive: true, force: true }),
  }
}

let buckets = 0

/** A fresh bucket for a table. */
export async function bucketTable(options: EmulatorClientOptions): Promise<SeenTable & { readonly bucket: string }> {
  const client = new S3Client({ ...options, forcePathStyle: true })
  const Bucket = `delta-${process.pid}-${buckets++}-${Date.now()}`
  await client.send(new CreateBucketCommand({ Bucket }))
  const at = (name: string) => ({ Bucket, Key: `lake/table/${name}` })
  return {
    table: `s3://${Bucket}/lake/table`,
    bucket: Bucket,
    async names() {
      const names: string[] = []
      let ContinuationToken: string | undefined
      do {
        const page = await client.send(new ListObjectsV2Command({ Bucket, Prefix: at('').Key, ContinuationToken }))
        for (const { Key = '' } of page.Contents ?? []) names.push(Key.slice(at('').Key.length))
        ContinuationToken = page.NextContinuationToken
      } while (ContinuationToken !== undefined)
      return names.sort()
    },
    async read(name) {
      const { Body } = await client.send(new GetObjectCommand(at(name)))
      return Buffer.from(await Body!.transformToByteArray())
    },
    async write(name, Body) {
      await client.send(new PutObjectCommand({ ...at(name), Body }))
    },
    async remove(name) {
      await client.send(new DeleteObjectCommand(at(name)))
    },
    dispose: async () => client.destroy(),
  }
}

const entryForm = /^_delta_log\/\d{20}\.json$/

/** Actions of the whole log, by entry. */
export async function logEntries(seen: SeenTable): Promise<Record<string, Record<string, unknown>>[][]> {
  const names = (await seen.names().catch(() => [])).filter((name) => entryForm.test(name))
  const texts = await Promise.all(names.map(async (name) => (await seen.read(name)).toString()))
  return texts.map((text) =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  )
}

/** Rows of the newest version. */
export async function tableRows(seen: SeenTable): Promise<Record<string, unknown>[]> {
  const live = new Map<string, true>()
  for (const { add, remove } of (await logEntries(seen)).flat()) {
    if (add !== undefined) live.set(String(add.path), true)
    if (remove !== undefined) live.delete(String(remove.path))
  }
  const rows: Record<string, unknown>[][] = []
  for (const path of live.keys()) {
    const bytes = await seen.read(decodeURIComponent(path))
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
    rows.push(await parquetReadObjects({ file }))
  }
  return rows.flat()
}

/** Copies the table; the result puts the copy back, and only that. */
export async function backup(seen: SeenTable): Promise<() => Promise<void>> {
  const copy = new Map<string, Buffer>()
  for (const name of await seen.names()) copy.set(name, await seen.read(name))
  return async () => {
    for (const name of await seen.names()) await seen.remove(name)
    for (const [name, bytes] of copy) await seen.write(name, bytes)
  }
}

/** Takes the transactions of an application out of the log. */
export async function dropTransactions(seen: SeenTable, appId: string): Promise<void> {
  for (const name of (await seen.names()).filter((one) => entryForm.test(one))) {
    const lines = (await seen.read(name)).toString().trim().split('\n')
    const kept = lines.filter((line) => !String(JSON.parse(line).txn?.appId ?? '').startsWith(appId))
    await seen.write(name, Buffer.from(`${kept.join('\n')}\n`))
  }
}
