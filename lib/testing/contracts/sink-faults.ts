/**
 * What a sink must live through: its process dies at any call, answers of the store or of the sink get lost.
 *
 * Apart from `sinkContract` because it needs more of the subject: a client over a store that fails (`over`), and
 * someone who cuts the exchanges with the sink's server (`disturb`). After each fault a client that knows nothing of
 * it goes on; at the end every row is visible once, and the marker is the newest epoch's. Where refused rows become
 * dead letters, each of them is recorded once in place of being visible, until it is forgotten.
 */
import assert from 'node:assert/strict'
import { PawlError } from '../../model/errors.ts'
import type { Committable } from '../../model/manifest.ts'
import type { Store } from '../../ports/store.ts'
import type { Contract, Obligation } from './contract.ts'
import { refusedValue } from './sink-refusals.ts'
import { type InputRow, type SinkCheck, SinkDriver, type SinkSubject } from './sink-subject.ts'

const faultsMax = 1000
const triesMax = 10
const bound = { rows: 1000, bytes: 1024 * 1024 }

type When = 'before' | 'after'

/** A store whose `nth` call fails by what `fail` makes, before or after its deed; dead for ever if `dies`. */
function failingStore(inner: Store, nth: number, when: When, dies: boolean): { store: Store; struck: () => boolean } {
  let calls = 0
  let struck = false
  const fail = () => (dies ? new Error('the process is dead') : new PawlError('UNKNOWN_RESULT', 'the store'))
  const pass = async <T>(deed: () => Promise<T>): Promise<T> => {
    if (struck && dies) throw fail()
    const strikes = calls++ === nth
    if (strikes) struck = true
    if (strikes && when === 'before') throw fail()
    const answer = await deed()
    if (strikes || (struck && dies)) throw fail()
    return answer
  }
  const store: Store = {
    create: (name, chunks) => pass(() => inner.create(name, chunks)),
    read: (name, range) => pass(() => inner.read(name, range)),
    async *list(prefix) {
      for await (const object of inner.list(prefix)) yield await pass(async () => object)
    },
    delete: (names) => pass(() => inner.delete(names)),
    close: async () => {},
  }
  return { store, struck: () => struck }
}

/** Runs each fault until one strikes no more; `run` answers whether it struck. */
async function untilNoneStrikes(run: (nth: number, when: When) => Promise<boolean>): Promise<void> {
  for (const when of ['before', 'after'] as const) {
    let nth = 0
    while (nth < faultsMax && (await run(nth, when))) nth++
    assert.ok(nth > 0 && nth < faultsMax, `${nth} faults struck`)
  }
}

async function clientOver(driver: SinkDriver, store: Store): Promise<SinkDriver> {
  assert.ok(driver.subject.over !== undefined, 'the subject opens no client over another store')
  const client = new SinkDriver(
    { ...driver.subject, store, sink: await driver.subject.over(store) },
    driver.incarnation,
  )
  for (const [lane, marker] of driver.markers) client.markers.set(lane, marker)
  return client
}

/** Rows of two tasks of an epoch, in one lane. */
type RowsOf = (epoch: number) => InputRow[][]

const welcomeRows: RowsOf = (epoch) =>
  ['a', 'b'].map((task) => [1, 2, 3].map((row) => ({ value: `${epoch}-${task}-${row}`, partition: 0 })))

/** Of the first task one row is refused, of the second one all there is. */
const someRefused: RowsOf = (epoch) => [
  [`${epoch}-1`, refusedValue, `${epoch}-3`].map((value) => ({ value, partition: 0 })),
  [{ value: refusedValue, partition: 0 }],
]

const valuesThrough = (epoch: number, rowsOf: RowsOf) =>
  Array.from({ length: epoch }, (_, i) => rowsOf(i + 1).flatMap((rows) => rows.map(({ value }) => value)))
    .flat()
    .filter((value) => value !== refusedValue)

/** Tries again while the error says that one may. */
async function atLast<T>(deed: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await deed()
    } catch (error) {
      if (tries === triesMax || (error as { kind?: string }).kind !== 'Retryable') throw error
    }
  }
}

/** Promotes as the protocol does: until it succeeds, or the marker shows that it has. */
async function promoteAtLast(driver: SinkDriver, committables: readonly Committable[]): Promise<void> {
  for (const committable of committables) {
    const answer = await atLast(() => driver.promote(committable))
    if (answer.result === 'refused') assert.deepEqual(answer.found, driver.markerOf(committable.epoch))
  }
}

/** What is shown is what was welcome; what was refused is recorded, and is forgotten by a client that may fail. */
async function holds(driver: SinkDriver, epoch: number, rowsOf: RowsOf, failing = driver): Promise<void> {
  assert.deepEqual(await driver.values(), valuesThrough(epoch, rowsOf))
  assert.deepEqual(await driver.sink.marker(0), driver.markerOf(epoch))
  const rows = rowsOf(epoch).flat()
  const refused = rows.flatMap(({ value }, row) => (value === refusedValue ? [row] : []))
  if (refused.length === 0) return
  const recorded = (await driver.sink.refused?.(0, bound)) ?? []
  assert.deepEqual(
    recorded.map((row) => [row.epoch, row.row]),
    refused.map((row) => [epoch, row]),
  )
  const ids = recorded.map(({ id }) => id)
  await failing.sink.forget?.(0, ids).catch(() => undefined)
  await driver.sink.forget?.(0, ids)
  assert.deepEqual(await driver.sink.refused?.(0, bound), [])
}

/** Stages an epoch; null when the client cannot. */
async function stagedBy(client: SinkDriver, epoch: number, rowsOf: RowsOf): Promise<Committable[] | null> {
  try {
    return await client.commit(epoch, ...rowsOf(epoch))
  } catch {
    return null
  }
}

const checksOf = (rowsOf: RowsOf): Record<string, SinkCheck> => ({
  'loses and repeats nothing when its process dies at any call of the store': async (driver) => {
    await driver.register()
    let epoch = 0
    await untilNoneStrikes(async (nth, when) => {
      epoch++
      const failing = failingStore(driver.subject.store, nth, when, true)
      const dying = await clientOver(driver, failing.store)
      const committables = (await stagedBy(dying, epoch, rowsOf)) ?? (await driver.commit(epoch, ...rowsOf(epoch)))
      for (const { lane } of committables) driver.markers.set(lane, driver.markerOf(epoch))
      for (const committable of committables) await dying.promote(committable).catch(() => undefined)
      const { struck } = failing
      await promoteAtLast(driver, committables)
      await holds(driver, epoch, rowsOf, dying)
      return struck()
    })
  },
  'loses and repeats nothing when any answer of the store is lost': async (driver) => {
    await driver.register()
    let epoch = 0
    await untilNoneStrikes(async (nth, when) => {
      epoch++
      const failing = failingStore(driver.subject.store, nth, when, false)
      const client = await clientOver(driver, failing.store)
      const committables = (await stagedBy(client, epoch, rowsOf)) ?? (await driver.commit(epoch, ...rowsOf(epoch)))
      for (const { lane } of committables) driver.markers.set(lane, driver.markerOf(epoch))
      await promoteAtLast(client, committables)
      await holds(driver, epoch, rowsOf, client)
      return failing.struck()
    })
  },
  'loses and repeats nothing when any exchange with the sink is cut': async (driver) => {
    const { disturb } = driver.subject.controls
    assert.ok(disturb !== undefined, 'nobody cuts the exchanges of this sink')
    await driver.register()
    let epoch = 0
    await untilNoneStrikes(async (nth, when) => {
      epoch++
      const end = await disturb(nth, when)
      const committables = (await stagedBy(driver, epoch, rowsOf)) ?? (await driver.commit(epoch, ...rowsOf(epoch)))
      await promoteAtLast(driver, committables)
      const struck = await end()
      await holds(driver, epoch, rowsOf)
      return struck
    })
  },
})

const registering: Record<string, SinkCheck> = {
  'gives a lane one base marker when any exchange with the sink is cut': async (driver) => {
    const { disturb, dropMarker } = driver.subject.controls
    assert.ok(disturb !== undefined, 'nobody cuts the exchanges of this sink')
    const marker = driver.markerOf(0)
    await driver.register()
    await untilNoneStrikes(async (nth, when) => {
      await dropMarker(0)
      const end = await disturb(nth, when)
      const given = await atLast(() => driver.sink.base(0, marker))
      const struck = await end()
      assert.deepEqual(given, marker)
      assert.deepEqual(await driver.sink.marker(0), marker)
      return struck
    })
    await driver.run(1, ...welcomeRows(1))
    await holds(driver, 1, welcomeRows)
  },
}

const faultContract = (port: string, checks: Readonly<Record<string, SinkCheck>>): Contract<SinkSubject> => ({
  port,
  obligations: Object.entries(checks).map(
    ([name, check]): Obligation<SinkSubject> => ({
      name,
      check: async (place) => check(new SinkDriver(await place.open()), place),
    }),
  ),
})

/** The obligations of a sink under faults. */
export const sinkFaultContract: Contract<SinkSubject> = faultContract('sink', {
  ...checksOf(welcomeRows),
  ...registering,
})

/** The same where some rows are refused: of a sink with `onReject: 'dead-letter'` that refuses `refusedValue`. */
export const sinkRefusalFaultContract: Contract<SinkSubject> = faultContract(
  'sink with dead letters',
  checksOf(someRefused),
)
