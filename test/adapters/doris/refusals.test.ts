import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { dorisHttp } from '../../../lib/adapters/doris/http.ts'
import { dorisLoads } from '../../../lib/adapters/doris/loads.ts'
import { RefusalSearch, refusalBudget } from '../../../lib/adapters/doris/refusals.ts'
import { bodyOf } from '../../../lib/adapters/doris/rows.ts'
import type { DorisHandle } from '../../../lib/adapters/doris/settle.ts'
import { type DorisOptions, doris } from '../../../lib/adapters/doris/sink.ts'
import { type MemoryStore, memoryStore } from '../../../lib/adapters/memory/store.ts'
import { addressOf } from '../../../lib/adapters/shared/database-address.ts'
import type { Committable, RejectedRecord } from '../../../lib/model/manifest.ts'
import { prng } from '../../../lib/model/prng.ts'
import { json, nullable, text } from '../../../lib/model/serde.ts'
import type { Store } from '../../../lib/ports/store.ts'
import { deadLetter, pipeline } from '../../../lib/stream/pipeline.ts'
import { topic } from '../../../lib/stream/topic.ts'
import { SinkDriver } from '../../../lib/testing/contracts/sink-subject.ts'
import { memory } from '../../../lib/testing/index.ts'
import { type DorisDouble, dorisDouble } from '../../support/doris-double.ts'
import { duplicateModel, uniqueModel } from '../../support/doris-loads.ts'
import { install } from '../../support/table-runs.ts'

let double: DorisDouble
let store: MemoryStore
/** What the tables take; changed by tests. */
let welcome: (value: string) => boolean

beforeEach(async () => {
  double = await dorisDouble()
  store = memoryStore()
  welcome = (value) => !value.endsWith('!')
  const columns = { k: () => true, v: (value: unknown) => value === null || welcome(String(value)) }
  double.createTable('shop.log', duplicateModel(columns))
  double.createTable('shop.totals', uniqueModel(['k'], columns))
})

afterEach(() => double.stop())

type Options = Partial<DorisOptions<string | null, string | null>>

async function openDriver(options: Options = {}, over: Store = store): Promise<SinkDriver> {
  const spec = doris<string | null, string | null>({
    ...{ connection: () => double.url, table: 'shop.log', row: (value, key) => ({ k: key, v: value }) },
    ...{ lanes: 3, timeoutMs: 2000, onReject: 'dead-letter' },
    ...options,
  })
  const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store: over }
  const driver = new SinkDriver({ sink: await spec.open('rows', context), store: over, controls: {} as never })
  await driver.register()
  return driver
}

const all = { rows: 2000, bytes: 1e7 }
const inLane0 = (...values: string[]) => values.map((value) => ({ value, partition: 0 }))
const values = () => double.rows('shop.log').map(({ v }) => String(v))
const recorded = async ({ sink }: SinkDriver, lane = 0) => (await sink.refused!(lane, all)).map(({ row }) => row)
const upsert: Options = { table: 'shop.totals', mode: 'upsert', key: ['k'], lanes: 1 }
const totals = () => Object.fromEntries(double.rows('shop.totals').map(({ k, v }) => [k, v]))

/** No load that was only tried has ever been committed; one whose abort got lost, Doris's clock aborts. */
function onlyDecidedLoads(): void {
  for (const { state } of double.txns(/^pawl-probe-/)) expect(state).toMatch(/^(ABORTED|PRECOMMITTED)$/)
}

/** Key and value of each recorded row, of all lanes. */
async function letters({ sink }: SinkDriver): Promise<string[]> {
  const rows = await Promise.all([0, 1, 2].map((lane) => sink.refused!(lane, all)))
  const cells = rows.flat().map(({ value }) => JSON.parse(Buffer.from(value!, 'base64').toString()))
  return cells.map(({ k, v }) => `${k}:${v}`).sort()
}

function loadsOf() {
  const address = () => addressOf(double.url, { sink: 'rows', protocols: ['http:'], port: 8030 })
  return dorisLoads('rows', dorisHttp({ sink: 'rows', timeoutMs: 2000, address }), 2000)
}

describe('rows that Doris refuses', () => {
  test.each((['json', 'csv'] as const).flatMap((format) => [0, 2, 1000].map((logs) => ({ format, logs }))))(
    'are left out, wherever they are, and no other: $format, a log of $logs rows',
    async ({ format, logs }) => {
      double.logs = logs
      const random = prng(logs + format.length)
      for (let epoch = 1; epoch <= 4; epoch++) {
        const before = values().length
        const driver = await openDriver({ format, columns: ['k', 'v'] })
        for (const lane of [0, 1, 2]) driver.markers.set(lane, (await driver.sink.marker(lane))!)
        const tasks = Array.from({ length: 3 }, (_, task) =>
          Array.from({ length: random.int(40) }, (_, i) => `${epoch}-${task}-${i}${random.int(12) === 0 ? '!' : ''}`),
        )
        const rows = tasks.flat()
        const bad = rows.flatMap((value, row) => (value.endsWith('!') ? [row] : []))
        const [committable] = await driver.commit(epoch, ...tasks.map((some) => inLane0(...some)))
        const answer = bad.length === 0 ? { result: 'promoted' } : { result: 'promoted', refused: bad.length }
        expect(await driver.promote(committable!)).toEqual(answer)
        expect(values().slice(before)).toEqual(rows.filter((value) => !value.endsWith('!')))
        const refused = await driver.sink.refused!(0, all)
        expect(refused.map(({ row }) => row)).toEqual(bad)
        await driver.sink.forget!(
          0,
          refused.map(({ id }) => id),
        )
      }
      onlyDecidedLoads()
    },
  )

  test('are recorded with row, column, key, and what Doris said of that row alone', async () => {
    const driver = await openDriver({ key: ['k'] })
    const [committable] = await driver.commit(1, [
      { key: 'a', value: '1' },
      { key: 'a', value: '2!' },
    ])
    const { lane } = committable!
    await driver.promote(committable!)
    const [row] = await driver.sink.refused!(lane, all)
    expect(row).toMatchObject({ epoch: 1, row: 1, incarnation: driver.incarnation, column: 'v', cutBytes: 0 })
    expect(row!.code).toBe('DATA_QUALITY_ERROR')
    expect(row!.reason).toMatch(/too many filtered rows.*column_name\[v\].*2!/s)
    expect(Buffer.from(row!.value!, 'base64').toString()).toBe('{"k":"a","v":"2!"}')
    expect(Buffer.from(row!.key!, 'base64').toString()).toBe('k="a"')
  })

  test('cost one load each and a few more, where the log of Doris shows them', async () => {
    const some = Array.from({ length: 3000 }, (_, i) => `${i}${i % 100 === 7 ? '!' : ''}`)
    double.logs = 50
    const driver = await openDriver()
    const [committable] = await driver.commit(1, inLane0(...some))
    expect(await driver.promote(committable!)).toEqual({ result: 'promoted', refused: 30 })
    expect(double.txns(/^pawl-probe-/).length).toBe(32)
  })

  test('keep their beginning, and together no more than a task may keep', async () => {
    const { driver, committable } = await staged(`${'y'.repeat(300_000)}!`, 'a!', 'b!')
    const [part] = committable.parts
    const { form, label } = part!.handle as DorisHandle
    const budget = { ...refusalBudget(), bytes: 256 * 1024 + 9 }
    const needs = { loads: loadsOf(), store, committable, incarnation: driver.incarnation, firstRow: 0 }
    const search = new RefusalSearch(part!, form, label, { ...needs, budget, countNoted: async () => 0 })
    expect(await search.more()).toBe(true)
    const line = '{"k":null,"v":"a!"}'.length
    const cut = 300_000 + line - 1 - 256 * 1024
    expect(search.found.map(({ cutBytes }) => cutBytes)).toEqual([cut, line - 9, line])
  })

  test('fail the attempt that stages them when the pipeline parks, and a table that does not fit always does', async () => {
    const parks = await openDriver({ onReject: 'park' })
    await expect(parks.stage(1, inLane0('a!'))).rejects.toMatchObject({ code: 'ROWS_REFUSED' })
    const missing = await openDriver({ table: 'shop.other' })
    await expect(missing.stage(1, inLane0('a'))).rejects.toMatchObject({ code: 'SINK_SCHEMA_INVALID' })
  })
})

describe('refused rows of an upsert', () => {
  const row = (key: string, value: string | null) => ({ key, value })

  test.each(['json', 'csv'] as const)('leave their place to the newest earlier row of the key: %s', async (format) => {
    const driver = await openDriver({ ...upsert, format, columns: ['k', 'v'] })
    const first = [row('a', '1'), row('a', '2!'), row('b', '1'), row('c', '1!'), row('d', '0'), row('d', null)]
    const second = [row('a', '3!'), row('a', '4!'), row('b', '2!'), row('b', '3'), row('d', '1'), row('d', '2!')]
    const third = [row('a', '5!'), row('d', null), row('e', '1!'), row('e', '2'), row('e', '3!')]
    await driver.run(1, [row('c', 'old')])
    await driver.run(2, first, second, third)
    expect(totals()).toEqual({ a: '1', b: '3', c: 'old', e: '2' })
    // What would have been sent was tried; a row that a newer welcome one of its load replaces (b: 2!, e: 1!) never is.
    expect(await letters(driver)).toEqual(['a:2!', 'a:3!', 'a:4!', 'a:5!', 'c:1!', 'd:2!', 'e:3!'])
    onlyDecidedLoads()
  })

  test('agree with a table that takes one row after another', async () => {
    const random = prng(11)
    for (let round = 0; round < 15; round++) {
      store = memoryStore()
      double.logs = random.int(3)
      const driver = await openDriver(upsert)
      let rows = 0
      const some = () => {
        const value = `${rows++}${random.int(3) === 0 ? '!' : ''}`
        return row(`r${round}-${random.int(4)}`, value)
      }
      const tasks = [0, 1].map(() => Array.from({ length: 1 + random.int(20) }, some))
      await driver.run(1, ...tasks)
      const isBad = (value: string | null) => value!.endsWith('!')
      const expected = Object.fromEntries(
        tasks.flat().flatMap(({ key, value }) => (isBad(value) ? [] : [[key, value]])),
      )
      const mine = Object.entries(totals()).filter(([key]) => key.startsWith(`r${round}-`))
      expect(Object.fromEntries(mine)).toEqual(expected)
      const buried = new Set(await letters(driver))
      for (const letter of buried) expect(letter).toMatch(/!$/)
      // A row is in the table, or recorded, or a newer one of its key took its place.
      for (const [at, { key, value }] of tasks.flat().entries()) {
        const newer = tasks.flat().some((row, index) => index > at && row.key === key && !isBad(row.value))
        expect(newer || buried.has(`${key}:${value}`) || expected[key] === value).toBe(true)
      }
    }
  })
})

/** Staged when Doris refuses a row, with that row's epoch ready to be promoted. */
async function staged(...rows: string[]): Promise<{ driver: SinkDriver; committable: Committable }> {
  const driver = await openDriver()
  const [committable] = await driver.commit(1, inLane0(...rows))
  return { driver, committable: committable! }
}

describe('the decision which rows are left out', () => {
  test('holds for the next promoter, though the table takes all rows by then', async () => {
    const { driver, committable } = await staged('a', 'b!', 'c')
    double.misdeeds.push({ deed: 'commit', does: 'never' })
    await expect(driver.promote(committable)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    welcome = () => true
    double.expirePrepared()
    expect(await (await openDriver()).promote(committable)).toEqual({ result: 'promoted', refused: 1 })
    expect(values()).toEqual(['a', 'c'])
    expect(await recorded(driver)).toEqual([1])
  })

  test('is the first one, when promoters see different tables at once', async () => {
    const { driver, committable } = await staged('a', 'b!', 'c')
    const gate = gated(store, /\.r000000000001$/)
    const late = await openDriver({}, gate.store)
    const promoting = late.promote(committable)
    await gate.reached
    // The late one has found that row b is refused, and is about to say so. The other one finds a mended table.
    welcome = () => true
    double.misdeeds.push({ deed: 'commit', does: 'never' })
    await expect(driver.promote(committable)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    gate.open()
    expect(await promoting).toEqual({ result: 'promoted' })
    expect(values()).toEqual(['a', 'b!', 'c'])
    expect(await recorded(driver)).toEqual([])
    expect(
      double
        .txns()
        .map(({ state }) => state)
        .sort(),
    ).not.toContain('PRECOMMITTED')
  })

  test('of a promoter that comes when the epoch is over commits nothing', async () => {
    const { driver, committable } = await staged('a', 'b!', 'c')
    const gate = gated(store, /\.r000000000001$/)
    const late = await openDriver({}, gate.store)
    const promoting = late.promote(committable)
    await gate.reached
    welcome = () => true
    await driver.promote(committable)
    await driver.run(2, inLane0('d'))
    gate.open()
    expect(await promoting).toEqual({ result: 'refused', found: driver.markerOf(2) })
    expect(values()).toEqual(['a', 'b!', 'c', 'd'])
    await driver.run(3, inLane0('e'))
    expect(store.names().filter((name) => name.startsWith('markers/p/rows/0/'))).toHaveLength(1)
  })

  test('names the load that is committed: not one of other rows, which somebody prepared late', async () => {
    const { driver, committable } = await staged('a', 'b!', 'c')
    double.misdeeds.push({ deed: 'commit', does: 'never' })
    await expect(driver.promote(committable)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    double.expirePrepared()
    welcome = () => true
    const [part] = committable.parts
    const { form, label } = part!.handle as DorisHandle
    await loadsOf().prepare(form, label, () => bodyOf(store, part!, form))
    expect(await driver.promote(committable)).toEqual({ result: 'promoted', refused: 1 })
    expect(values()).toEqual(['a', 'c'])
  })

  test('is final: what is refused beyond it parks until the table is mended', async () => {
    const { driver, committable } = await staged('a', 'b!', 'c')
    double.misdeeds.push({ deed: 'commit', does: 'never' })
    await expect(driver.promote(committable)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    double.expirePrepared()
    welcome = (value) => value === 'a'
    await expect(driver.promote(committable)).rejects.toMatchObject({
      code: 'ROWS_REFUSED',
      kind: 'Invalid',
      details: { lane: 0, epoch: 1, rowKey: '{"k":null,"v":"c"}', column: 'v' },
    })
    welcome = (value) => value !== 'b!'
    expect(await driver.promote(committable)).toEqual({ result: 'promoted', refused: 1 })
    expect(values()).toEqual(['a', 'c'])
  })

  test('is stopped by a label that Doris forgot after a commit was attempted', async () => {
    const { driver, committable } = await staged('a', 'b!')
    double.misdeeds.push({ deed: 'commit', does: 'lost' })
    await expect(driver.promote(committable)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    double.forgetLabels()
    await expect(driver.promote(committable)).rejects.toMatchObject({ code: 'LABEL_FORGOTTEN' })
    expect(values()).toEqual(['a'])
  })

  test('goes by what the pipeline file said when rows were staged', async () => {
    const parks = await openDriver({ onReject: 'park' })
    welcome = () => true
    const [one] = await parks.commit(1, inLane0('a!'))
    const carries = await openDriver()
    for (const [lane, marker] of parks.markers) carries.markers.set(lane, marker)
    const [two] = await carries.commit(2, inLane0('b!', 'b'))
    double.expirePrepared()
    welcome = (value) => !value.endsWith('!')
    await expect(carries.promote(one!)).rejects.toMatchObject({
      code: 'ROWS_REFUSED',
      message: expect.stringMatching(/sink rows, lane 0, epoch 1, table shop.log, row .*"v":"a!".*, column v:/),
    })
    welcome = (value) => value !== 'b!'
    expect(await carries.promote(one!)).toEqual({ result: 'promoted' })
    expect(await parks.promote(two!)).toEqual({ result: 'promoted', refused: 1 })
    expect(values()).toEqual(['a!', 'b'])
    expect(one!.parts[0]!.handle).toMatchObject({ version: 1 })
  })
})

describe('a promotion stops, and names a row', () => {
  test('when the pipeline parks and the table has changed since rows were staged', async () => {
    double.logs = 0
    welcome = () => true
    const driver = await openDriver({ onReject: 'park' })
    const [committable] = await driver.commit(1, inLane0(...Array.from({ length: 1000 }, (_, i) => `${i}`)))
    double.expirePrepared()
    welcome = (value) => !value.startsWith('71')
    await expect(driver.promote(committable!)).rejects.toMatchObject({
      code: 'ROWS_REFUSED',
      details: { sink: 'rows', lane: 0, epoch: 1, table: 'shop.log', rowKey: '{"k":null,"v":"71"}' },
    })
    expect(double.txns(/^pawl-probe-/).length).toBeLessThan(20)
    expect(values()).toEqual([])
  })

  test('when more rows are refused than are an exception, over all parts', async () => {
    double.logs = 2000
    const driver = await openDriver()
    const many = Array.from({ length: 340 }, (_, i) => `${i}!`)
    const parts = [0, 1, 2].map(() => inLane0('a', ...many))
    const [committable] = await driver.commit(1, ...parts)
    await expect(driver.promote(committable!)).rejects.toMatchObject({
      code: 'ROWS_REFUSED',
      message: expect.stringMatching(/sink rows, lane 0, epoch 1, table shop.log, row .*, column v: .*more than/s),
    })
    welcome = () => true
    await driver.promote(committable!)
    const written = values().length
    expect(written + (await recorded(driver)).length).toBe(3 * 341)
  })

  test('when it would take too many loads to find them', async () => {
    double.logs = 0
    const driver = await openDriver()
    const [committable] = await driver.commit(
      1,
      inLane0(...Array.from({ length: 4000 }, (_, i) => (i % 20 ? `${i}` : `${i}!`))),
    )
    await expect(driver.promote(committable!)).rejects.toMatchObject({
      code: 'ROWS_REFUSED',
      message: expect.stringMatching(/row .*0!.*takes more than 500 loads/s),
    })
    expect(values()).toEqual([])
    expect(await driver.sink.marker(0)).toEqual(driver.markerOf(0))
    welcome = () => true
    expect(await driver.promote(committable!)).toEqual({ result: 'promoted' })
  })
})

/** A store that stops before it creates what matches, until it is opened. */
function gated(inner: Store, name: RegExp) {
  let open = () => {}
  let arrive = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const reached = new Promise<void>((resolve) => {
    arrive = resolve
  })
  const gate: Store = {
    ...inner,
    async create(object, chunks) {
      if (name.test(object)) {
        arrive()
        await opened
      }
      return inner.create(object, chunks)
    },
  }
  return { store: gate, open: () => open(), reached }
}

/** A store in which others run between any two calls. */
function crowded(inner: Store, random: ReturnType<typeof prng>): Store {
  const pause = async () => {
    for (let turns = random.int(4); turns > 0; turns--) await turn()
  }
  return {
    ...inner,
    async create(name, chunks) {
      await pause()
      return inner.create(name, chunks)
    },
    async read(name, range) {
      await pause()
      return inner.read(name, range)
    },
  }
}

test.each(Array.from({ length: 12 }, (_, seed) => seed))(
  'several promoters, a moody table and lost answers lose and repeat no row (seed %i)',
  async (seed) => {
    const random = prng(seed)
    double.logs = random.int(3)
    const stager = await openDriver()
    const rows: string[] = []
    for (let epoch = 1; epoch <= 3; epoch++) {
      const tasks = [0, 1].map((task) =>
        Array.from({ length: 1 + random.int(6) }, (_, i) => `${epoch}-${task}-${i}${random.int(4) === 0 ? '!' : ''}`),
      )
      rows.push(...tasks.flat())
      const [committable] = await stager.commit(epoch, ...tasks.map((some) => inLane0(...some)))
      const next = stager.markerOf(epoch)
      for (let tries = 0; (await stager.sink.marker(0))?.epoch !== epoch; tries++) {
        const mood = random.int(tries < 10 ? 3 : 1)
        welcome = [() => true, (v: string) => !v.endsWith('!'), (v: string) => !v.endsWith('1!')][mood]!
        if (random.int(3) === 0) double.expirePrepared()
        const deed = (['load', 'commit', 'abort', 'state'] as const)[random.int(4)]!
        if (tries < 10)
          double.misdeeds.push({ deed, does: (['lost', 'never', 'busy', 'away'] as const)[random.int(4)]! })
        const clients = await Promise.all([0, 1, 2].map(() => openDriver({}, crowded(store, random))))
        const answers = await Promise.allSettled(clients.map((client) => client.promote(committable!)))
        for (const answer of answers) {
          if (answer.status === 'rejected') expect(['SINK_UNAVAILABLE', 'ROWS_REFUSED']).toContain(answer.reason.code)
          else if (answer.value.result === 'refused') expect(answer.value.found).toEqual(next)
        }
        double.misdeeds.length = 0
        expect(tries).toBeLessThan(40)
      }
    }
    const refused = await stager.sink.refused!(0, all)
    const buried = refused.map(({ value }) => JSON.parse(Buffer.from(value!, 'base64').toString()).v as string)
    expect([...values(), ...buried].sort()).toEqual([...rows].sort())
    for (const letter of buried) expect(letter).toMatch(/!$/)
    onlyDecidedLoads()
  },
)

test('a pipeline makes each refused row a dead letter once, and shows every other row once, while Doris fails', async () => {
  const random = prng(8)
  double.createTable('shop.numbers', duplicateModel({ n: (n) => Number(n) % 7 !== 3 }))
  const dead = memory<RejectedRecord, string | null>({ value: json(), key: nullable(text()) })
  const numbers = pipeline('numbers', {
    ...{ checkpoint: { intervalMs: 0 }, promotionRetryMs: [1, 2], restart: { strategy: 'none' } },
    onError: deadLetter('letters', dead),
  })
    .from(topic('numbers', { value: text() }))
    .to(
      'table',
      doris<string>({
        ...{ connection: () => double.url, table: 'shop.numbers', timeoutMs: 2000, onReject: 'dead-letter' },
        row: (value) => ({ n: Number(value) }),
      }),
    )
  const runs = install(numbers)
  try {
    for (let batch = 0; batch < 4; batch++) {
      await runs.append(...Array.from({ length: 25 }, (_, i) => `${batch * 25 + i}`))
      for (const deed of ['load', 'commit', 'state'] as const)
        double.misdeeds.push({ deed, does: (['lost', 'never', 'busy', 'away'] as const)[random.int(4)]! })
      expect((await runs.run()).reason).toBe('caught-up')
    }
    const all = Array.from({ length: 100 }, (_, n) => n)
    const shown = double.rows('shop.numbers').map(({ n }) => Number(n))
    expect(shown).toEqual(all.filter((n) => n % 7 !== 3))
    const buried = dead.entries().map(({ value }) => JSON.parse(Buffer.from(value!.value!, 'base64').toString()).n)
    expect(buried).toEqual(all.filter((n) => n % 7 === 3))
    expect(dead.entries()[0]!.value).toMatchObject({ operator: 'table', refused: { sink: 'table', column: 'n' } })
  } finally {
    runs.remove()
  }
})
