import { createServer } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { BrokerChoice, KafkaLink, TopicLayout } from '../../../lib/adapters/kafka/link.ts'
import type { FetchAnswer } from '../../../lib/adapters/kafka/log-requests.ts'
import { KafkaSource } from '../../../lib/adapters/kafka/source.ts'
import type { WireRequest } from '../../../lib/adapters/kafka/wire.ts'
import { PawlError } from '../../../lib/model/errors.ts'
import { encoded } from '../../model/record-batches.ts'
import { offsets, openSource, readAll } from '../../support/kafka-source.ts'

type Reply = Partial<FetchAnswer> | PawlError | undefined

/** A cluster of brokers 1 and 2 with one partition; `reply` may answer a fetch otherwise than the log would. */
class ScriptedLink implements KafkaLink {
  leader = 1
  lastStable: bigint
  readonly fetches: { readonly node: BrokerChoice; readonly offset: bigint }[] = []
  readonly #batches: readonly { readonly base: bigint; readonly bytes: Buffer }[]
  readonly #reply: (fetch: number, offset: bigint) => Reply

  constructor(counts: readonly number[], reply: (fetch: number, offset: bigint) => Reply = () => undefined) {
    let base = 0n
    this.#batches = counts.map((count) => {
      const records = Array.from({ length: count }, () => ({ timestampMs: 0, key: null, value: 'v' }))
      base += BigInt(count)
      return { base: base - BigInt(count), bytes: encoded(records, { baseOffset: base - BigInt(count) }) }
    })
    this.lastStable = base
    this.#reply = reply
  }

  async topics(names: readonly string[]): Promise<ReadonlyMap<string, TopicLayout>> {
    return new Map(names.map((name) => [name, { topicId: '0'.repeat(32), leaders: [this.leader] }]))
  }

  async send<T>(node: BrokerChoice, request: WireRequest<T>): Promise<T> {
    if (request.apiName === 'ListOffsets') {
      const earliest = Buffer.concat(request.body).readBigInt64BE(Buffer.concat(request.body).length - 8) === -2n
      return [{ partition: 0, error: 0, offset: earliest ? 0n : this.lastStable }] as T
    }
    const offset = request.body[0].readBigInt64BE(52)
    this.fetches.push({ node, offset })
    const reply = this.#reply(this.fetches.length, offset)
    if (reply instanceof Error) throw reply
    const batch = this.#batches.findLast(({ base }) => base <= offset)
    const records = offset < this.lastStable && batch ? batch.bytes : Buffer.alloc(0)
    const stable = { highWatermark: this.lastStable, lastStableOffset: this.lastStable }
    return { error: 0, ...stable, aborted: [], records, ...reply } as T
  }
}

const sourceOf = (link: KafkaLink, patienceMs = 2000) =>
  new KafkaSource(link, { topic: 'lines', isolation: 'read_committed', patienceMs })
const upTo = (end: number) => Array.from({ length: end }, (_, i) => `${i}`)
const lost = new PawlError('UNKNOWN_RESULT', 'Fetch')

test('asks the new leader when the leader has moved', async () => {
  const link: ScriptedLink = new ScriptedLink([2, 2, 2], (fetch) => {
    if (fetch !== 2) return undefined
    link.leader = 2
    return { error: 6 }
  })
  expect(offsets(await readAll(sourceOf(link), { start: 0n, end: 6n }))).toEqual(upTo(6))
  expect(link.fetches.map(({ node }) => node)).toEqual([1, 1, 2, 2])
})

test('delivers each record once however many answers are lost or empty', async () => {
  const faults = fc.array(
    fc.constantFrom<Reply>(lost, { error: 6 }, { error: 78 }, { records: Buffer.alloc(0) }, undefined),
    {
      maxLength: 12,
    },
  )
  const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(sizes, faults, async (counts, replies) => {
      const link = new ScriptedLink(counts, (fetch) => replies[fetch - 1])
      const end = Number(link.lastStable)
      expect(offsets(await readAll(sourceOf(link), { start: 0n, end: link.lastStable }))).toEqual(upTo(end))
    }),
    { numRuns: 60 },
  )
})

test('takes an empty answer for no hole: it waits, then fails so that it is tried again', async () => {
  const link = new ScriptedLink([2], () => ({ records: Buffer.alloc(0) }))
  await expect(readAll(sourceOf(link, 50), { start: 0n, end: 2n })).rejects.toMatchObject({
    code: 'LOG_UNAVAILABLE',
    kind: 'Retryable',
  })
  expect(link.fetches.length).toBeGreaterThan(2)
})

test('names topic, partition and offset of damaged batches', async () => {
  const bytes = encoded([{ timestampMs: 0, key: null, value: 'value' }])
  const broken = Buffer.from(bytes)
  broken[broken.length - 2] ^= 1
  const details = { topic: 'lines', partition: 0, offset: '0' }
  for (const records of [broken, bytes.subarray(0, bytes.length - 1)]) {
    const read = readAll(sourceOf(new ScriptedLink([1], () => ({ records }))), { start: 0n, end: 1n })
    await expect(read).rejects.toMatchObject({ code: 'BATCH_DAMAGED', details })
  }
})

test('fetches one answer ahead, and no more once the reader stops', async () => {
  const link = new ScriptedLink([1, 1, 1, 1, 1, 1])
  for await (const batch of sourceOf(link).read({ partition: 0, start: 0n, end: 6n })) {
    if (batch.baseOffset === 2n) break
  }
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(link.fetches.map(({ offset }) => offset)).toEqual([0n, 1n, 2n, 3n])
})

test('throws the error of a fetch ahead only when the reader comes that far', async () => {
  const link = new ScriptedLink([1, 1], (fetch) => (fetch === 2 ? { error: 29 } : undefined))
  const reading = sourceOf(link).read({ partition: 0, start: 0n, end: 2n })[Symbol.asyncIterator]()
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect((await reading.next()).value?.count).toBe(1)
  await expect(reading.next()).rejects.toMatchObject({ code: 'AUTHORIZATION_FAILED', details: { kafka: 29 } })
})

test('waits for a partition to have a leader, with an error that is tried again', async () => {
  const link = new ScriptedLink([1])
  link.leader = -1
  await expect(sourceOf(link, 30).bounds()).rejects.toMatchObject({ code: 'LOG_UNAVAILABLE', kind: 'Retryable' })
  const later = sourceOf(link).bounds()
  setTimeout(() => {
    link.leader = 2
  }, 20)
  expect((await later).partitions).toEqual([{ partition: 0, start: 0n, end: 1n }])
})

test('gives up on brokers that do not answer after its patience, naming them', async () => {
  const log = await openSource({ bootstrap: '127.0.0.1:1' }, 'any', { patienceMs: 300 })
  await expect(log.bounds()).rejects.toThrow(/BROKER_UNREACHABLE.*127\.0\.0\.1:1/)
  await log.close()
})

test('gives up on a broker that takes connections and says nothing', async () => {
  const silent = createServer(() => undefined)
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const bootstrap = `127.0.0.1:${(silent.address() as { port: number }).port}`
  const log = await openSource({ bootstrap }, 'any', { patienceMs: 300, connectTimeoutMs: 300 })
  await expect(log.bounds()).rejects.toThrow(/BROKER_UNREACHABLE/)
  await log.close()
  silent.close()
})
