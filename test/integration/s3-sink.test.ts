import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
} from '@aws-sdk/client-s3'
import { describe, expect, onTestFinished } from 'vitest'
import { type S3FilesOptions, s3Files } from '../../lib/adapters/s3/files.ts'
import { prng } from '../../lib/model/prng.ts'
import { text } from '../../lib/model/serde.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { type Emulator, startEmulator, awsTest as test } from '../support/aws.ts'
import { missingDeltaReaders, startDeltaReaders } from '../support/delta.ts'
import { faultProxy, type ProxiedCall, type ProxyFault } from '../support/fault-proxy.ts'
import { type BucketView, bucketView, fileLists, readRows } from '../support/s3-contract.ts'
import { markerOf, type RigRow, settled, tableRig } from '../support/table-rig.ts'
import { install } from '../support/table-runs.ts'

type Options = Partial<S3FilesOptions<unknown, unknown>>

/** A rig on a bucket of its own behind a proxy, and a view that goes around it. */
async function rigOn(emulator: Emulator, options: Options = {}) {
  const view = await bucketView(emulator)
  const proxy = await faultProxy(emulator.endpoint)
  const aws = { ...emulator.client, endpoint: proxy.endpoint, forcePathStyle: true }
  const spec = s3Files<unknown, unknown>({ ...aws, bucket: view.name, prefix: 'out', format: 'json-lines', ...options })
  const rig = await tableRig(spec)
  await rig.base()
  onTestFinished(async () => {
    await rig.sink.close()
    await proxy.close()
    view.client.destroy()
  })
  const uploads = async () => {
    const { Uploads = [] } = await view.client.send(new ListMultipartUploadsCommand({ Bucket: view.name }))
    return Uploads
  }
  return { rig, proxy, view, uploads }
}

const isFile = (key: string) => !key.startsWith('out/_')
const files = async (view: BucketView) => (await view.keys('out/')).filter(isFile)
const put = ({ method }: ProxiedCall) => method === 'PUT'
const putOf = (what: string) => (call: ProxiedCall) => put(call) && call.path.includes(what)
const complete = ({ method, path }: ProxiedCall) => method === 'POST' && path.includes('uploadId=')
const answered = (status: number, code: string): ProxyFault => ({ fault: 'answered', status, code })

/** Values of all listed files, in the order of the lists. */
async function listed(view: BucketView): Promise<unknown[]> {
  const values: unknown[] = []
  for (const { files: named } of await fileLists(view, 'out/')) {
    for (const { name } of named) {
      const lines = (await view.read(`out/${name}`)).toString().split('\n').slice(0, -1)
      values.push(...lines.map((line) => JSON.parse(line) as unknown))
    }
  }
  return values
}

/** Rows of more than two parts of an upload. */
function largeRows(seed: number): RigRow[] {
  const random = prng(seed)
  return Array.from({ length: 300 }, (_, n) => [{ n, text: `${random.int(1e9)}`.repeat(6000) }, 'k'])
}

describe('small files', () => {
  test('case 1: an epoch shows once when answers are lost, requests doubled, conflicts met', async ({ emulator }) => {
    const { rig, proxy, view } = await rigOn(emulator)
    for (const [index, where] of ['rows-0', '_manifest', '_pawl'].entries()) {
      const committable = await rig.stage([[`${index}-a`], [`${index}-b`]])
      proxy.plan(putOf(where), { fault: 'answer-lost' })
      proxy.plan(putOf(where), { fault: 'repeated', answer: 'second' })
      await settled(rig, committable)
      const again = await rig.stage([[`${index}-c`]])
      proxy.plan(putOf(where), answered(409, 'ConditionalRequestConflict'))
      proxy.plan(putOf(where), answered(503, 'SlowDown'))
      await settled(rig, again)
      expect(proxy.left).toBe(0)
    }
    expect(await listed(view)).toEqual([0, 1, 2].flatMap((index) => ['a', 'b', 'c'].map((name) => `${index}-${name}`)))
    expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 6))
    expect(await files(view)).toHaveLength(6)
  })

  test('case 66: what a dead promotion writes late changes nothing, and brings nothing back', async ({ emulator }) => {
    const { rig, proxy, view } = await rigOn(emulator)
    const first = await rig.stage([['a']])
    for (const where of ['rows-0', '_manifest', '_pawl']) proxy.plan(putOf(where), { fault: 'late', afterMs: 500 })
    await settled(rig, first)
    await rig.run([['b']])
    const [taken] = await files(view)
    await sleep(700)
    expect(await listed(view)).toEqual(['a', 'b'])
    expect(await rig.sink.marker(0)).toEqual(markerOf(rig.incarnation, 2))
    await view.remove(taken!)
    expect(await rig.promote(first)).toMatchObject({ result: 'refused' })
    expect(await files(view)).not.toContain(taken)
  })

  test('a foreign object under the name of a file is never replaced', async ({ emulator }) => {
    const { rig, view } = await rigOn(emulator)
    const committable = await rig.stage([['a']])
    const {
      files: [file],
    } = committable.parts[0]!.handle as { files: { name: string }[] }
    const key = `out/${file!.name}`
    await view.put(key, Buffer.from('"b"\n'))
    await expect(rig.promote(committable)).rejects.toMatchObject({ code: 'FILE_FOREIGN' })
    expect((await view.read(key)).toString()).toBe('"b"\n')
    await view.remove(key)
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
  })

  test('case 2: an unknown result is compared with what is there, and deletes nothing', async ({ emulator }) => {
    const { rig, proxy, view } = await rigOn(emulator)
    const committable = await rig.stage([['a']])
    proxy.plan(putOf('rows-0'), { fault: 'late', afterMs: 300 })
    proxy.plan(putOf('rows-0'), { fault: 'request-lost' }, 7)
    await settled(rig, committable)
    expect(proxy.calls.filter(({ method }) => method === 'DELETE')).toEqual([])
    expect(await listed(view)).toEqual(['a'])
    expect(await files(view)).toHaveLength(1)
  })

  test('case 8: only one of many promoters at once moves the marker, and conflicts are tried again', async ({
    emulator,
  }) => {
    const { rig, proxy, view } = await rigOn(emulator)
    const committable = await rig.stage([['a']])
    proxy.plan(put, answered(409, 'ConditionalRequestConflict'), 5)
    const answers = await Promise.all(Array.from({ length: 4 }, () => rig.promote(committable)))
    expect(answers).toContainEqual({ result: 'promoted' })
    for (const answer of answers)
      if (answer.result === 'refused') expect(answer.found).toEqual(markerOf(rig.incarnation, 1))
    expect(await listed(view)).toEqual(['a'])
    expect(await files(view)).toHaveLength(1)
  })

  test('a bucket that is away for a while is waited for, one that forbids is told', async ({ emulator }) => {
    const { rig, proxy, view } = await rigOn(emulator)
    const committable = await rig.stage([['a']])
    proxy.plan(put, answered(503, 'SlowDown'), 8)
    await expect(rig.promote(committable)).rejects.toMatchObject({ kind: 'Retryable' })
    proxy.plan(put, answered(403, 'AccessDenied'))
    await expect(rig.promote(committable)).rejects.toMatchObject({ code: 'AWS_ACCESS_DENIED' })
    await settled(rig, committable)
    expect(await listed(view)).toEqual(['a'])
  })

  test('files end at their size, and lie in folders by event time or by values', async ({ emulator }) => {
    const { rig, view } = await rigOn(emulator, { partitionBy: 'event-day', fileBytesMax: 100 })
    const rows = Array.from({ length: 60 }, (_, i): RigRow => [`row ${i}`, 'k', i * 43_200_000 - 86_400_000])
    await rig.run(rows, 5)
    const days = new Set((await files(view)).map((key) => key.split('/')[1]))
    expect([...days].slice(-2)).toEqual(['day=1970-01-28', 'day=1970-01-29'].slice(-2))
    expect(days.size).toBe(30)
    expect((await listed(view)).toSorted()).toEqual(rows.map(([value]) => value).toSorted())
    const split = await rigOn(emulator, { fileBytesMax: 100 })
    await split.rig.run(rows, 5)
    expect((await files(split.view)).length).toBeGreaterThan(3)
    expect(await listed(split.view)).toEqual(rows.map(([value]) => value))
  })
})

describe('large files', () => {
  test('go up in operate, unseen, and are completed in promote', async ({ emulator }) => {
    const { rig, proxy, view, uploads } = await rigOn(emulator)
    const rows = largeRows(1)
    const committable = await rig.stage(rows, 40)
    expect(await files(view)).toEqual([])
    expect(await uploads()).toHaveLength(1)
    proxy.forget()
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
    expect(proxy.calls.filter(complete)).toHaveLength(1)
    expect(proxy.calls.filter(putOf('rows-0'))).toEqual([])
    expect(await uploads()).toEqual([])
    expect(await listed(view)).toEqual(rows.map(([value]) => value))
  })

  test('case 21: an upload that the bucket forgot is made again from the store', async ({ emulator }) => {
    const { rig, view, uploads } = await rigOn(emulator)
    const rows = largeRows(2)
    const committable = await rig.stage(rows, 40)
    for (const { Key, UploadId } of await uploads()) {
      await view.client.send(new AbortMultipartUploadCommand({ Bucket: view.name, Key, UploadId }))
    }
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
    expect(await listed(view)).toEqual(rows.map(([value]) => value))
  })

  test('case 1: a completion whose answer was lost, or that came twice, made one file', async ({ emulator }) => {
    const { rig, proxy, view } = await rigOn(emulator)
    const faults: ProxyFault[] = [
      { fault: 'answer-lost' },
      { fault: 'repeated', answer: 'second' },
      answered(500, 'InternalError'),
      answered(409, 'ConditionalRequestConflict'),
    ]
    for (const fault of faults) {
      const committable = await rig.stage(largeRows(3), 40)
      proxy.plan(complete, fault)
      await settled(rig, committable)
      expect(proxy.left).toBe(0)
    }
    expect(await listed(view)).toHaveLength(faults.length * 300)
    expect(await files(view)).toHaveLength(faults.length)
  })

  test('an upload that does not go well is left to promotion', async ({ emulator }) => {
    const { rig, proxy, view, uploads } = await rigOn(emulator)
    proxy.plan(putOf('partNumber=2'), answered(503, 'SlowDown'), 8)
    const committable = await rig.stage(largeRows(4), 40)
    expect(await uploads()).toEqual([])
    expect(await rig.promote(committable)).toEqual({ result: 'promoted' })
    expect(await listed(view)).toHaveLength(300)
  })

  test('cases 10 and 55: uploads of failed attempts are forgotten, those of retained epochs and of others are not', async ({
    emulator,
  }) => {
    const { rig, view, uploads } = await rigOn(emulator)
    const failed = await rig.stage(largeRows(5), 40)
    await rig.sink.discard!(failed.parts)
    await rig.sink.discard!(failed.parts)
    expect(await uploads()).toEqual([])
    await rig.stage(largeRows(6), 40)
    const kept = await rig.stage(largeRows(7), 40)
    await view.client.send(new CreateMultipartUploadCommand({ Bucket: view.name, Key: 'out/somebody.jsonl' }))
    const found = await rig.sink.staged!()
    expect(found).toHaveLength(2)
    await rig.sink.sweep!(
      found,
      kept.parts.map(({ handle }) => handle),
    )
    await rig.sink.sweep!(
      found,
      kept.parts.map(({ handle }) => handle),
    )
    const left = (await uploads()).map(({ Key }) => Key)
    expect(left).toHaveLength(2)
    expect(left).toContain('out/somebody.jsonl')
    expect(await rig.sink.staged!()).toHaveLength(1)
  })
})

test('Parquet files are read by DuckDB, row by row and with their types, in partitions too', async ({
  emulator,
  skip,
}) => {
  const missing = missingDeltaReaders()
  if (missing !== null) skip(missing)
  const { rig, view } = await rigOn(emulator, {
    format: 'parquet',
    partitionBy: (value) => ({ country: (value as { c: string }).c }),
    columns: {
      id: 'long',
      price: 'decimal(38,10)',
      at: 'timestamp',
      day: 'date',
      ok: 'boolean',
      score: 'double',
      raw: 'binary',
      doc: 'json',
      name: 'string',
      n: 'integer',
    },
  })
  const rows = Array.from({ length: 2500 }, (_, i): RigRow => {
    const empty = i % 7 === 0
    const row = {
      id: 9007199254740993n + BigInt(i),
      price: `-${i}.0000000001`,
      at: `2026-11-30T23:59:59.${`${i}`.padStart(6, '0')}+02:00`,
      day: '1969-12-31',
      ok: i % 2 === 0,
      score: i / 3,
      raw: new Uint8Array([i & 255, 0]),
      doc: { i, list: [null, 'ü'] },
      name: i % 5 === 0 ? '' : `name "${i}"`,
      n: -i,
    }
    return [{ c: ['de', 'a/b', 'é'][i % 3], ...(empty ? { id: i } : row) }, `k${i}`]
  })
  await rig.run(rows, 400)
  const directory = mkdtempSync(join(tmpdir(), 'pawl-parquet-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  for (const key of await files(view)) {
    mkdirSync(dirname(join(directory, key)), { recursive: true })
    writeFileSync(join(directory, key), await view.read(key))
  }
  const readers = startDeltaReaders()
  onTestFinished(() => readers.stop())
  const { types, found } = await readers.run<{ types: string[]; found: unknown[][] }>(
    `t = duckdb.read_parquet(directory + '/**/*.parquet', hive_partitioning=True)
text = 'SELECT country, id::VARCHAR, price::VARCHAR, epoch_us("at"), day::VARCHAR, ok, score, hex(raw), doc, name, n FROM t ORDER BY id'
result = {'types': [str(x) for x in t.types], 'found': [list(r) for r in duckdb.sql(text).fetchall()]}`,
    { directory },
  )
  expect(types).toEqual([
    'BIGINT',
    'DECIMAL(38,10)',
    'TIMESTAMP WITH TIME ZONE',
    'DATE',
    'BOOLEAN',
    'DOUBLE',
    'BLOB',
    'VARCHAR',
    'VARCHAR',
    'INTEGER',
    'VARCHAR',
  ])
  const wanted = rows.map(([value]) => {
    const row = value as Record<string, never> & { c: string; id: bigint; raw?: Uint8Array; at: string }
    if (row.raw === undefined) return [row.c, `${row.id}`, ...Array(9).fill(null)]
    const us = Date.parse('2026-11-30T21:59:59Z') * 1000 + Number(row.at.slice(20, 26))
    const doc = JSON.stringify(row.doc)
    return [
      row.c,
      `${row.id}`,
      row.price,
      us,
      row.day,
      row.ok,
      row.score,
      Buffer.from(row.raw).toString('hex').toUpperCase(),
      doc,
      row.name,
      row.n,
    ]
  })
  const byId = (a: unknown[], b: unknown[]) => (BigInt(a[1] as string) < BigInt(b[1] as string) ? -1 : 1)
  expect(found).toEqual(wanted.sort(byId))
})

test('Parquet has a row group for each flush, so that no file lies in memory', async ({ emulator }) => {
  const { rig, view } = await rigOn(emulator, { format: 'parquet', columns: { n: 'long' } })
  await rig.run(
    Array.from({ length: 1000 }, (_, n) => [{ n }, 'k']),
    100,
  )
  const [key] = await files(view)
  const rows = await readRows(await view.read(key!), 'parquet')
  expect(rows.map(({ n }) => Number(n))).toEqual(Array.from({ length: 1000 }, (_, n) => n))
})

test('a bucket put back by five epochs is healed', async ({ emulator }) => {
  const view = await bucketView(emulator)
  onTestFinished(() => view.client.destroy())
  const aws = { ...emulator.client, forcePathStyle: true }
  const lines = pipeline('lines', { checkpoint: { intervalMs: 0 }, retain: { epochs: 20 } })
    .from(topic('lines', { value: text() }))
    .to('out', s3Files({ ...aws, bucket: view.name, prefix: 'out', format: 'json-lines' }))
  const runs = install(lines)
  onTestFinished(runs.remove)
  const epoch = async (number: number) => {
    await runs.append(`line ${number}`)
    expect(await runs.run()).toMatchObject({ reason: 'caught-up' })
  }
  for (let number = 1; number <= 4; number++) await epoch(number)
  const before = new Map<string, Buffer>()
  for (const key of await view.keys()) before.set(key, await view.read(key))
  for (let number = 5; number <= 9; number++) await epoch(number)
  for (const key of await view.keys()) await view.remove(key)
  for (const [key, bytes] of before) await view.put(key, bytes)
  await epoch(10)
  expect(runs.events).toContainEqual(expect.objectContaining({ event: 'healed', sink: 'out', lane: 0 }))
  expect(await listed(view)).toEqual(Array.from({ length: 10 }, (_, i) => `line ${i + 1}`))
})

test('case 18: goes on where it was when the emulator is stopped and started in mid-promote', async ({
  emulator: shared,
}) => {
  expect(shared.endpoint).toMatch(/^http/)
  const emulator = await startEmulator()
  onTestFinished(() => emulator.remove())
  const { rig, view } = await rigOn(emulator, { fileBytesMax: 5 })
  const committable = await rig.stage(
    Array.from({ length: 60 }, (_, i) => [`row ${i}`]),
    1,
  )
  const promoting = rig.promote(committable).catch((error: unknown) => error)
  await sleep(60)
  await emulator.stop()
  await emulator.restart()
  await promoting
  await settled(rig, committable)
  expect(await listed(view)).toEqual(Array.from({ length: 60 }, (_, i) => `row ${i}`))
  expect(await files(view)).toHaveLength(60)
})
