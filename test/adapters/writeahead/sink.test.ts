import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type MemoryStore, memoryStore } from '../../../lib/adapters/memory/store.ts'
import { type WriteAheadContext, type WriteAheadOptions, writeAhead } from '../../../lib/adapters/writeahead/sink.ts'
import { PawlError } from '../../../lib/model/errors.ts'
import type { Committable } from '../../../lib/model/manifest.ts'
import { SinkDriver } from '../../../lib/testing/contracts/sink-subject.ts'
import { type HttpTarget, httpTarget, type Misdeed } from '../../support/http-target.ts'

let target: HttpTarget
let store: MemoryStore

beforeEach(async () => {
  target = await httpTarget()
  store = memoryStore()
})

afterEach(() => target.kill())

/** Posts rows, as a user's function does. */
async function post(rows: readonly { readonly value: string | null }[], context: WriteAheadContext): Promise<void> {
  const { idempotencyKey: key, epoch, lane, signal } = context
  const body = JSON.stringify({ key, epoch, lane, rows: rows.map(({ value }) => value) })
  const answer = await fetch(target.url, { method: 'POST', body, signal })
  if (!answer.ok) throw new Error(`the endpoint answers ${answer.status}`)
}

type Options = Partial<WriteAheadOptions<string, string>>

async function openDriver(options: Options = {}): Promise<SinkDriver> {
  const spec = writeAhead<string, string>({ write: post, lanes: 3, batchRows: 10, timeoutMs: 2000, ...options })
  const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store }
  const sink = await spec.open('rows', context)
  return new SinkDriver({ sink, store, controls: {} as never })
}

const inLane0 = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({ value: `${prefix}${i}`, partition: 0 }))
const values = (prefix: string, count: number) => inLane0(prefix, count).map(({ value }) => value)
const writtenRows = () => target.written.flatMap(({ rows }) => rows)

/** Promotes until it succeeds; answers with the number of tries. A dead endpoint is started in between. */
async function promoteAtLast(driver: SinkDriver, committable: Committable): Promise<number> {
  for (let tries = 1; tries <= 50; tries++) {
    try {
      expect(await driver.promote(committable)).toEqual({ result: 'promoted' })
      return tries
    } catch (error) {
      expect(error).toMatchObject({ code: 'SINK_UNAVAILABLE', kind: 'Retryable' })
      await target.start()
    }
  }
  throw new Error('it never succeeds')
}

describe('write-ahead to an HTTP endpoint', () => {
  test('cuts batches by rows and by bytes, in order, each under a key of its own', async () => {
    const driver = await openDriver()
    await driver.register()
    await driver.run(1, inLane0('a', 25), inLane0('b', 3))
    expect(target.written.map(({ rows }) => rows.length)).toEqual([10, 10, 5, 3])
    expect(writtenRows()).toEqual([...values('a', 25), ...values('b', 3)])
    expect(new Set(target.written.map(({ key }) => key)).size).toBe(4)

    const narrow = await openDriver({ batchBytes: 60, batchRows: 1000 })
    for (const [lane, marker] of driver.markers) narrow.markers.set(lane, marker)
    await narrow.run(2, inLane0('c', 9))
    expect(target.written.filter(({ epoch }) => epoch === 2).length).toBeGreaterThan(2)
    expect(writtenRows().slice(28)).toEqual(values('c', 9))
  })

  test('tells the function which rows these are', async () => {
    const seen: WriteAheadContext[] = []
    const driver = await openDriver({ write: async (_, context) => void seen.push(context) })
    await driver.register()
    await driver.run(1, inLane0('a', 12))
    expect(seen).toMatchObject([
      { pipeline: 'p', sink: 'rows', lane: 0, epoch: 1, firstRow: 0 },
      { pipeline: 'p', sink: 'rows', lane: 0, epoch: 1, firstRow: 10 },
    ])
    for (const { idempotencyKey } of seen) expect(idempotencyKey).toMatch(/^[0-9a-f-]{52,100}$/)
  })

  test.each<[string, Misdeed, repeated: number]>([
    ['answers 429', { does: 'refuses', status: 429 }, 0],
    ['answers 500', { does: 'refuses', status: 500 }, 0],
    ['loses a request', { does: 'loses the request' }, 0],
    ['loses an answer', { does: 'loses the answer' }, 1],
    ['is killed before it wrote', { does: 'dies', after: 'reading' }, 0],
    ['is killed after it wrote', { does: 'dies', after: 'writing' }, 1],
  ])('repeats the batch under way and no other when the endpoint %s', async (_, misdeed, repeated) => {
    const batches = 4
    for (let at = 0; at < batches; at++) {
      store = memoryStore()
      const from = target.written.length
      const driver = await openDriver()
      await driver.register()
      const [committable] = await driver.commit(1, inLane0('a', 10 * batches))
      target.misdeeds.push(...Array<null>(at).fill(null), misdeed)
      expect(await promoteAtLast(driver, committable!)).toBe(2)
      const batchesWritten = target.written.slice(from).map(({ rows }) => rows[0])
      const once = Array.from({ length: batches }, (_, i) => `a${i * 10}`)
      once.splice(at, 0, ...Array<string>(repeated).fill(`a${at * 10}`))
      expect(batchesWritten).toEqual(once)
      const keys = target.written.slice(from).map(({ key }) => key)
      expect(new Set(keys).size).toBe(batches)
    }
  })

  test('gives up a call whose time is over, by its signal, and writes the rows later', async () => {
    const driver = await openDriver({ timeoutMs: 50 })
    await driver.register()
    const [committable] = await driver.commit(1, inLane0('a', 5))
    target.misdeeds.push({ does: 'dawdles', ms: 400 })
    await expect(driver.promote(committable!)).rejects.toMatchObject({
      code: 'SINK_UNAVAILABLE',
      details: { sink: 'rows', lane: 0, epoch: 1, firstRow: 0, rows: 5 },
    })
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(target.written).toEqual([])
    expect(await driver.promote(committable!)).toEqual({ result: 'promoted' })
    expect(writtenRows()).toEqual(values('a', 5))
  })

  test('does not wait for ever for a function that does not heed its signal', async () => {
    const driver = await openDriver({ timeoutMs: 20, write: () => new Promise(() => undefined) })
    await driver.register()
    const [committable] = await driver.commit(1, inLane0('a', 1))
    await expect(driver.promote(committable!)).rejects.toThrow('no answer in 20 ms')
  })

  test('stops an older promoter before its next batch when another one has finished the epoch', async () => {
    const driver = await openDriver()
    await driver.register()
    const [committable] = await driver.commit(1, inLane0('a', 40))
    const other = await openDriver()
    const slow = await openDriver({
      async write(rows, context) {
        await post(rows, context)
        if (context.firstRow === 10) await other.promote(committable!)
      },
    })
    expect(await slow.promote(committable!)).toEqual({ result: 'refused', found: driver.markerOf(1) })
    const counts = new Map<string, number>()
    for (const row of writtenRows()) counts.set(row, (counts.get(row) ?? 0) + 1)
    expect([...counts].filter(([, count]) => count > 1).map(([row]) => row)).toEqual(values('a', 20).slice(10))
    expect([...counts.keys()]).toEqual(values('a', 40))
  })

  test('leaves one object a lane behind, however many epochs there were', async () => {
    const driver = await openDriver()
    await driver.register()
    for (let epoch = 1; epoch <= 20; epoch++) await driver.run(epoch, inLane0('a', 25))
    expect(store.names().filter((name) => name.startsWith('markers/p/rows/0/'))).toEqual([
      'markers/p/rows/0/000000000021',
    ])
  })
})

/** A store that dies at the nth call, before or after the deed; or loses the answer alone. */
function mortal(
  inner: MemoryStore,
  at: number,
  when: 'before' | 'after',
  code: 'STORE_UNAVAILABLE' | 'UNKNOWN_RESULT',
) {
  let calls = 0
  const deed = async <T>(run: () => Promise<T>): Promise<T> => {
    const dies = calls++ === at
    if (dies && when === 'before') throw new PawlError(code, 'the store')
    const answer = await run()
    if (dies) throw new PawlError(code, 'the store')
    return answer
  }
  return {
    calls: () => calls,
    store: {
      ...inner,
      create: (name, chunks) => deed(() => inner.create(name, chunks)),
      read: (name, range) => deed(() => inner.read(name, range)),
      delete: (names) => deed(() => inner.delete(names)),
    } satisfies MemoryStore,
  }
}

describe('write-ahead over a store that fails', () => {
  test.each([
    ['before', 'STORE_UNAVAILABLE'],
    ['after', 'STORE_UNAVAILABLE'],
    ['before', 'UNKNOWN_RESULT'],
    ['after', 'UNKNOWN_RESULT'],
  ] as const)('crash %s each call (%s): nothing is lost, one batch at most comes again', async (when, code) => {
    let repeatedAtAll = 0
    for (let at = 0, ended = false; !ended; at++) {
      store = memoryStore()
      const first = await openDriver()
      await first.register()
      const [one] = await first.commit(1, inLane0('a', 30))
      const [two] = await first.commit(2, inLane0('b', 20))
      const written: string[] = []
      const write: Options['write'] = async (rows) => void written.push(...rows.map(({ value }) => value ?? ''))
      const faulty = mortal(store, at, when, code)
      const healthy = store
      store = faulty.store
      const dying = await openDriver({ write })
      await dying
        .promote(one!)
        .then(
          () => dying.promote(two!),
          () => undefined,
        )
        .catch(() => undefined)
      ended = faulty.calls() <= at
      store = healthy
      const next = await openDriver({ write })
      for (const committable of [one!, two!]) await next.promote(committable)
      expect(await next.sink.marker(0)).toEqual(next.markerOf(2))
      const expected = [...values('a', 30), ...values('b', 20)]
      expect([...new Set(written)]).toEqual(expected)
      expect(written.length - expected.length).toBeLessThanOrEqual(10)
      repeatedAtAll += written.length - expected.length
    }
    if (code === 'STORE_UNAVAILABLE') expect(repeatedAtAll).toBeGreaterThan(0)
  })
})

test('says that it was untouched when the function does, as long as nothing was written', async () => {
  let calls = 0
  const away = async (rows: readonly { readonly value: string | null }[], context: WriteAheadContext) => {
    if (++calls === 1 || calls === 3) throw Object.assign(new Error('away'), { untouched: true })
    await post(rows, context)
  }
  const driver = await openDriver({ write: away, batchRows: 2 })
  await driver.register()
  const [committable] = await driver.commit(1, inLane0('a', 6))
  await expect(driver.promote(committable!)).rejects.toMatchObject({ details: { untouched: true } })
  // The first batch is written, the second one is not: the whole is not untouched any more.
  await expect(driver.promote(committable!)).rejects.toMatchObject({ details: { untouched: false } })
  expect(await driver.promote(committable!)).toEqual({ result: 'promoted' })
  expect(writtenRows()).toEqual(values('a', 6))
})
