/**
 * A million rows in one epoch of one lane: too slow for every run of a suite, and still owed.
 *
 * Neither staging nor promotion may let this process hold more than a fixed amount, however much the epoch has. A sink
 * that cannot help holding a lane says how much that may be, and its `limits` see to it. The store of the subject has to
 * keep what is staged elsewhere (`fileStore`), or staging does not pass; so has the sink's server what it was sent.
 */
import assert from 'node:assert/strict'
import type { Committable } from '../../model/manifest.ts'
import type { Contract } from './contract.ts'
import { type Held, heldWhile } from './held-memory.ts'
import { contractLanes, SinkDriver, type SinkSubject } from './sink-subject.ts'

/** How large the epoch is; fewer rows where the limits of the sink say so. */
export interface SinkSizeOptions {
  readonly rows: number
  readonly rowBytes: number
}

/** What was measured, in bytes that the process held beyond what it held before. */
export interface SinkSizeFigures {
  readonly rows: number
  /** As staged. */
  readonly bytes: number
  /** While all rows were staged, sealed and assembled. */
  readonly stageHeldBytes: number
  /** While all lanes were promoted, one after another. */
  readonly promoteHeldBytes: number
}

/** Runs something, and looks at the process meanwhile. */
export type Watch = <T>(work: () => Promise<T>) => Promise<Held<T>>

/** What promotion and staging may hold where the subject states nothing else. */
export const heldBytesMaxDefault = 48 * 1024 * 1024

const million: SinkSizeOptions = { rows: 1_000_000, rowBytes: 100 }
const bufferedBytesMax = 1024 * 1024
/** Beside its value a staged row has its names, its key and its time. */
const rowFrameBytes = 150

/** The obligation to take an epoch of a million rows of 100 bytes, or of as many as its limits allow. */
export const sinkSizeContract: Contract<SinkSubject> = sinkSizeContractOf(million)

/** As `sinkSizeContract`, with an epoch of another size: few large rows take less time for as many bytes. */
export function sinkSizeContractOf(options: SinkSizeOptions): Contract<SinkSubject> {
  return {
    port: 'sink',
    obligations: [
      {
        name: 'takes a million rows, or all that its limits allow, in bounded memory',
        async check(place) {
          const subject = await place.open()
          const { stageHeldBytes, promoteHeldBytes } = await measureSinkSize(subject, options)
          const { stage = heldBytesMaxDefault, promote = heldBytesMaxDefault } = subject.heldBytesMax ?? {}
          assert.ok(stageHeldBytes <= stage, `staging held ${stageHeldBytes} bytes, of ${stage} at most`)
          assert.ok(promoteHeldBytes <= promote, `promotion held ${promoteHeldBytes} bytes, of ${promote} at most`)
        },
      },
    ],
  }
}

/**
 * Stages and promotes one epoch, and says what the process held meanwhile, or what another `watch` makes of it. Throws
 * when rows are missing.
 */
export async function measureSinkSize(
  subject: SinkSubject,
  options: SinkSizeOptions,
  watch: Watch = heldWhile,
): Promise<SinkSizeFigures> {
  const driver = new SinkDriver(subject)
  const { laneRowsMax, laneBytesMax } = driver.sink.limits
  const rows = Math.min(options.rows, laneRowsMax, Math.floor(laneBytesMax / (options.rowBytes + rowFrameBytes)))
  await driver.register()
  const staged = await watch(() => stageRows(driver, rows, options.rowBytes))
  const promoted = await watch(() => promoteAll(driver, staged.result))
  const { count, visible } = driver.subject.controls
  assert.equal(count === undefined ? (await visible()).length : await count(), rows)
  const bytes = staged.result.reduce((sum, committable) => sum + committable.bytes, 0)
  return { rows, bytes, stageHeldBytes: staged.heldBytes, promoteHeldBytes: promoted.heldBytes }
}

/** Rows without a key, of one partition: where the sink knows no key of its own, one lane gets all of them. */
async function stageRows(driver: SinkDriver, rows: number, rowBytes: number): Promise<readonly Committable[]> {
  const value = 'v'.repeat(rowBytes - 8)
  const writer = await driver.sink.stage(driver.context(1))
  for (let i = 0; i < rows; i++) {
    writer.add(null, `${String(i).padStart(7, '0')} ${value}`, i, contractLanes)
    if (writer.bufferedBytes < bufferedBytesMax / 2) continue
    assert.ok(writer.bufferedBytes < bufferedBytesMax, `${writer.bufferedBytes} bytes are buffered`)
    await writer.flush()
    // A sink that never waits would leave no moment to look.
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  const committables = await driver.commitParts(1, await writer.seal())
  assert.equal(
    committables.reduce((sum, committable) => sum + committable.rows, 0),
    rows,
  )
  return committables
}

async function promoteAll(driver: SinkDriver, committables: readonly Committable[]): Promise<void> {
  const { laneRowsMax, laneBytesMax } = driver.sink.limits
  for (const { rows, bytes } of committables) assert.ok(rows <= laneRowsMax && bytes <= laneBytesMax, 'over its limits')
  for (const committable of committables) {
    assert.deepEqual(await driver.promote(committable), { result: 'promoted' })
    assert.deepEqual(await driver.sink.marker(committable.lane), driver.markerOf(1))
  }
}
