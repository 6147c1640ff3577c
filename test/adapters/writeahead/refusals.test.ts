import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type MemoryStore, memoryStore } from '../../../lib/adapters/memory/store.ts'
import { type WriteAheadOptions, writeAhead } from '../../../lib/adapters/writeahead/sink.ts'
import type { RejectedRecord } from '../../../lib/model/manifest.ts'
import { prng } from '../../../lib/model/prng.ts'
import { json, nullable, text } from '../../../lib/model/serde.ts'
import { deadLetter, pipeline } from '../../../lib/stream/pipeline.ts'
import { topic } from '../../../lib/stream/topic.ts'
import { SinkDriver } from '../../../lib/testing/contracts/sink-subject.ts'
import { memory } from '../../../lib/testing/index.ts'
import { type Installation, install } from '../../support/table-runs.ts'

let store: MemoryStore
let written: string[]

beforeEach(() => {
  store = memoryStore()
  written = []
})

type Options = Partial<WriteAheadOptions<string, string>>

/** Writes all rows but those whose value ends with `!`. */
const picky: WriteAheadOptions<string, string>['write'] = async (rows) => {
  written.push(...rows.flatMap(({ value }) => (value?.endsWith('!') ? [] : [value ?? ''])))
  const isBad = ({ value }: { readonly value: string | null }) => value?.endsWith('!') === true
  return { refused: rows.flatMap((row, at) => (isBad(row) ? [{ row: at, reason: 'too loud', code: '422' }] : [])) }
}

async function openDriver(options: Options = {}): Promise<SinkDriver> {
  const spec = writeAhead<string, string>({
    ...{ write: picky, lanes: 3, batchRows: 4, onReject: 'dead-letter', value: text() },
    ...options,
  })
  const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store }
  const driver = new SinkDriver({ sink: await spec.open('rows', context), store, controls: {} as never })
  await driver.register()
  return driver
}

const all = { rows: 1000, bytes: 1e6 }
const rows = (...values: string[]) => values.map((value) => ({ value, partition: 0 }))

describe('rows that a function refuses for good', () => {
  test('are recorded as they were encoded, with what the function said, in the order of the lane', async () => {
    const driver = await openDriver({
      write: async () => ({
        refused: [
          { row: 1, reason: 'b', column: 'v' },
          { row: 0, reason: 'a', code: '422' },
        ],
      }),
    })
    const [committable] = await driver.commit(1, [
      { key: 'k', value: 'x', partition: 0 },
      { key: 'k', value: 'y' },
    ])
    const { lane } = committable!
    expect(await driver.promote(committable!)).toEqual({ result: 'promoted', refused: 2 })
    const place = { epoch: 1, incarnation: driver.incarnation, cutBytes: 0, key: Buffer.from('k').toString('base64') }
    const encoded = (value: string) => Buffer.from(value).toString('base64')
    expect(await driver.sink.refused!(lane, all)).toMatchObject([
      { ...place, row: 0, reason: 'a', code: '422', column: null, value: encoded('x') },
      { ...place, row: 1, reason: 'b', code: 'REFUSED', column: 'v', value: encoded('y') },
    ])
  })

  test('keep their beginning when they are large', async () => {
    const driver = await openDriver()
    const [committable] = await driver.commit(1, rows(`${'x'.repeat(300_000)}!`))
    await driver.promote(committable!)
    const [row] = await driver.sink.refused!(0, all)
    expect(row).toMatchObject({ cutBytes: 300_001 - 256 * 1024 })
  })

  test('park by default, by name, and go on where they were once the target takes them', async () => {
    const driver = await openDriver({ onReject: 'park' })
    const [committable] = await driver.commit(1, [
      { key: 'k', value: 'a' },
      { key: 'k', value: 'b!' },
    ])
    const { lane } = committable!
    await expect(driver.promote(committable!)).rejects.toMatchObject({
      code: 'ROWS_REFUSED',
      kind: 'Invalid',
      message: expect.stringContaining(`sink rows, lane ${lane}, epoch 1, row 1 (key k): 422: too loud`),
    })
    expect(await driver.sink.marker(lane)).toEqual(driver.markerOf(0))
    const mended = await openDriver({
      onReject: 'park',
      write: async (some) => void written.push(...some.map(({ value }) => value ?? '')),
    })
    expect(await mended.promote(committable!)).toEqual({ result: 'promoted' })
    expect(written).toEqual(['a', 'a', 'b!'])
  })

  test('go to the dead letters after a park, once the pipeline file says so', async () => {
    const parks = await openDriver({ onReject: 'park' })
    const [committable] = await parks.commit(1, rows('a', 'b!'))
    await expect(parks.promote(committable!)).rejects.toMatchObject({ code: 'ROWS_REFUSED' })
    const carries = await openDriver()
    expect(await carries.promote(committable!)).toEqual({ result: 'promoted', refused: 1 })
  })

  test.each<[string, unknown]>([
    ['row 2 is none of the 2 rows', { refused: [{ row: 2, reason: 'r' }] }],
    ['row -1 is none', { refused: [{ row: -1, reason: 'r' }] }],
    ['row 0.5 is none', { refused: [{ row: 0.5, reason: 'r' }] }],
    ['row undefined is none', { refused: [null] }],
    [
      'row 1 is named twice',
      {
        refused: [
          { row: 1, reason: 'r' },
          { row: 1, reason: 's' },
        ],
      },
    ],
    ['row 0 has no reason', { refused: [{ row: 0 }] }],
    ['refused is no list', { refused: 'all' }],
  ])('are an error when the function says nonsense: %s', async (fault, answer) => {
    const driver = await openDriver({ write: async () => answer as never })
    const [committable] = await driver.commit(1, rows('a', 'b'))
    await expect(driver.promote(committable!)).rejects.toMatchObject({
      code: 'WRITE_ANSWER_INVALID',
      message: expect.stringContaining(fault),
      details: { sink: 'rows', lane: 0, epoch: 1, firstRow: 0 },
    })
    expect(await driver.sink.marker(0)).toEqual(driver.markerOf(0))
  })

  test.each([undefined, null, true, 'done', [], {}, { refused: [] }])('are none when it says %o', async (answer) => {
    const driver = await openDriver({ write: async () => answer as never })
    const [committable] = await driver.commit(1, rows('a', 'b'))
    expect(await driver.promote(committable!)).toEqual({ result: 'promoted' })
  })

  test('park when they are too many for one promotion, over all of its tries', async () => {
    const driver = await openDriver({ batchRows: 400 })
    const many = Array.from({ length: 1001 }, (_, i) => `${i}!`)
    const [committable] = await driver.commit(1, rows(...many))
    for (let tries = 0; tries < 2; tries++)
      await expect(driver.promote(committable!)).rejects.toMatchObject({
        code: 'ROWS_REFUSED',
        message: expect.stringContaining('1001 rows are refused'),
      })
    const mended = await openDriver({
      write: async (some) => void written.push(...some.map(({ value }) => value ?? '')),
    })
    // What was noted as refused before stays so.
    expect(await mended.promote(committable!)).toEqual({ result: 'promoted', refused: 800 })
    expect(written).toEqual(many.slice(800))
  })

  test('count as the first promoter noted them, and no row is neither written nor recorded', async () => {
    const driver = await openDriver({ batchRows: 2 })
    const [committable] = await driver.commit(1, rows('a', 'b'))
    let calls = 0
    const other = await openDriver()
    // A target that refuses now one row, now another one.
    const fickle = async (some: Parameters<NonNullable<Options['write']>>[0]) => {
      const bad = calls++ % 2
      if (calls === 1) await other.promote(committable!)
      written.push(...some.flatMap(({ value }, at) => (at === bad ? [] : [value ?? ''])))
      return { refused: [{ row: bad, reason: 'a mood' }] }
    }
    const [slow, quick] = [await openDriver({ write: fickle }), await openDriver({ write: fickle })]
    const answers = await Promise.allSettled([slow.promote(committable!), quick.promote(committable!)])
    expect(answers.every(({ status }) => status === 'fulfilled')).toBe(true)
    const recorded = (await driver.sink.refused!(0, all)).map(({ row }) => 'ab'[row]!)
    expect(new Set([...written, ...recorded])).toEqual(new Set(['a', 'b']))
  })
})

describe('a pipeline whose function refuses rows', () => {
  let runs: Installation | null = null
  afterEach(() => runs?.remove())

  const isBad = (n: number) => n % 7 === 3

  test.each(['exactly-once', 'at-least-once', 'at-most-once'] as const)(
    'under %s makes each of them a dead letter once, and shows every other row, while the function fails',
    async (guarantee) => {
      const random = prng(3)
      const shown = new Map<string, readonly number[]>()
      const refusals = new Map<string, readonly number[]>()
      const letters = memory<RejectedRecord, string | null>({ value: json(), key: nullable(text()) })
      const numbers = pipeline('refusing', {
        ...{ guarantee, checkpoint: { intervalMs: 0 }, promotionRetryMs: [1, 2] },
        onError: deadLetter('letters', letters),
      })
        .from(topic('numbers', { value: text() }))
        .map((value) => Number(value))
        .to(
          'function',
          writeAhead<number, unknown>({
            ...{ idempotent: guarantee === 'exactly-once', batchRows: 5, onReject: 'dead-letter' },
            async write(some, { idempotencyKey }) {
              if (random.int(3) === 0) throw Object.assign(new Error('not now'), { untouched: true })
              const values = some.map(({ value }) => value ?? 0)
              shown.set(
                idempotencyKey,
                values.filter((n) => !isBad(n)),
              )
              const refused = values.flatMap((n, row) => (isBad(n) ? [{ row, reason: 'seven' }] : []))
              refusals.set(
                idempotencyKey,
                refused.map(({ row }) => values[row]!),
              )
              // The answer gets lost.
              if (guarantee !== 'at-most-once' && random.int(4) === 0) throw new Error('cut')
              return { refused }
            },
          }),
        )
      runs = install(numbers)
      for (let batch = 0; batch < 4; batch++) {
        // One block an epoch, so that a failure is of the first block alone.
        await runs.append(...Array.from({ length: 5 }, (_, i) => `${batch * 5 + i}`))
        expect((await runs.run()).reason).toBe('caught-up')
      }
      const numbersIn = Array.from({ length: 20 }, (_, n) => n)
      expect([...shown.values()].flat()).toEqual(numbersIn.filter((n) => !isBad(n)))
      const buried = letters.entries().map(({ value }) => Number(Buffer.from(value!.value!, 'base64').toString()))
      expect(buried).toEqual(numbersIn.filter(isBad))
      expect(letters.entries()[0]!.value).toMatchObject({
        operator: 'function',
        refused: { sink: 'function', code: 'REFUSED' },
      })
    },
  )
})
