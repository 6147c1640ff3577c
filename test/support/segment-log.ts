/**
 * A log of segments as its contract sees it, over whatever store it lies in.
 */
import { seededRandom } from '../../lib/adapters/memory/random.ts'
import { createSegmentLog, openSegmentLog } from '../../lib/adapters/segments/log.ts'
import type { Store } from '../../lib/ports/store.ts'
import type { LogControls, LogSubject } from '../../lib/testing/contracts/log-subject.ts'

/** Makes the ids of topics and appends. */
export const segmentRandom = seededRandom(1)

async function dropAll(store: Store, prefix: string): Promise<void> {
  const names: string[] = []
  for await (const { name } of store.list(prefix)) names.push(name)
  await store.delete(names)
}

/** A client of the log of segments `lines`, with what the checks do behind its back. */
export async function segmentSubject(store: Store, baseOffset: bigint): Promise<LogSubject> {
  const options = { topic: 'lines', partitions: 3, random: segmentRandom, baseOffset }
  const log = await openSegmentLog(store, 'lines', segmentRandom)
  const controls: LogControls = {
    async loseBefore(partition, offset) {
      const lost: string[] = []
      for await (const { name } of store.list(`logs/lines/${partition}/`)) {
        if (BigInt(name.slice(name.lastIndexOf('/') + 1)) < offset) lost.push(name)
      }
      await store.delete(lost)
    },
    async recreate() {
      await dropAll(store, 'logs/lines/')
      await createSegmentLog(store, options)
    },
    remove: () => dropAll(store, 'logs/lines/'),
    grow: (partitions) => log.grow(partitions),
  }
  return { log, controls }
}

/** What a log of segments does not have. */
export const segmentDifferences = {
  'case 29: ends a range that holds no record': 'its offsets are dense',
  'case 30: ends a range whose end lies in a hole': 'its offsets are dense',
  'case 31: goes on behind a hole': 'its offsets are dense',
}
