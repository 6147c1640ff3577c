/**
 * Runs epochs through the files sink and appends to a log, without an end, printing what has returned: whoever
 * kills this process knows what must be there. Two of them may run at once, as two runs of one pipeline might.
 */
import { writeSync } from 'node:fs'
import { createSegmentLog } from '../../../lib/adapters/segments/log.ts'
import { systemRandom } from '../../../lib/adapters/system/random.ts'
import { isPawlError } from '../../../lib/model/errors.ts'
import { lanes, markerOf, openEpochs } from './sink-epochs.ts'

const [directory, worker] = process.argv.slice(2) as [string, string]
const epochs = openEpochs(directory)
const print = (line: string) => writeSync(1, `${line}\n`)

async function runEpochs(): Promise<never> {
  for (let lane = 0; lane < lanes; lane++) await epochs.sink.base(lane, markerOf(0, 'base'))
  for (;;) {
    const newest = await epochs.newest()
    if (newest !== null) {
      await epochs.promote(newest)
      print(`promoted ${newest.epoch}`)
    }
    await advance(newest)
  }
}

/** A rival that promoted this epoch has swept the staging of ours; then there is nothing more to do for it. */
async function advance(newest: Awaited<ReturnType<typeof epochs.newest>>): Promise<void> {
  try {
    await epochs.advance(newest)
  } catch (error) {
    const overtaken = (await epochs.newest())?.epoch !== newest?.epoch
    if (!isPawlError(error) || !overtaken) throw error
  }
}

async function runAppends(): Promise<never> {
  const log = await createSegmentLog(epochs.store, { topic: 'lines', partitions: 1, random: systemRandom() })
  for (let i = 0; ; i++) {
    const records = [0, 1].map((half) => ({ key: null, value: `${worker}-${i}-${half}`, timestampMs: i }))
    const { baseOffset } = await log.append(0, records)
    print(`appended ${worker}-${i} ${baseOffset}`)
    await new Promise((next) => setTimeout(next, 3))
  }
}

await Promise.all([runEpochs(), runAppends()])
