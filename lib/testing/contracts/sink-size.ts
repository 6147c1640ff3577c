/**
 * A million rows in one epoch: too slow for every run of a suite, and still owed.
 *
 * Staging may hold no more than a flush, and promotion may not let the process grow by what the epoch holds.
 */
import assert from 'node:assert/strict'
import type { Contract } from './contract.ts'
import { SinkDriver, type SinkSubject } from './sink-subject.ts'

const rows = 1_000_000
const bufferedBytesMax = 1024 * 1024
const value = 'v'.repeat(80)

/** The obligation to take an epoch of a million rows of 100 bytes. */
export const sinkSizeContract: Contract<SinkSubject> = {
  port: 'sink',
  obligations: [
    {
      name: 'takes a million rows in bounded memory',
      async check(place) {
        const driver = new SinkDriver(await place.open())
        await driver.register()
        const writer = await driver.sink.stage(driver.context(1))
        for (let i = 0; i < rows; i++) {
          writer.add(`key-${i % 9973}`, `${i} ${value}`, i, 0)
          if (writer.bufferedBytes < bufferedBytesMax / 2) continue
          assert.ok(writer.bufferedBytes < bufferedBytesMax, `${writer.bufferedBytes} bytes are buffered`)
          await writer.flush()
        }
        const committables = await driver.commitParts(1, await writer.seal())
        assert.equal(
          committables.reduce((sum, committable) => sum + committable.rows, 0),
          rows,
        )
        for (const committable of committables) {
          assert.deepEqual(await driver.promote(committable), { result: 'promoted' })
          assert.deepEqual(await driver.sink.marker(committable.lane), driver.markerOf(1))
        }
        const { count } = driver.subject.controls
        assert.equal(count === undefined ? (await driver.subject.controls.visible()).length : await count(), rows)
      },
    },
  ],
}
