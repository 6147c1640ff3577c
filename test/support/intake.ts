/**
 * An intake with its broker: a log in memory, whose records come as events or are read by a recovery.
 */
import type { memoryLog } from '../../lib/adapters/memory/log.ts'
import { placedOf } from '../../lib/adapters/segments/intake-digest.ts'
import { openIntakeLog } from '../../lib/adapters/segments/intake-log.ts'
import { recoverIntake } from '../../lib/adapters/segments/intake-recover.ts'
import type { PlacedRecord } from '../../lib/model/mapping-event.ts'
import type { LogSource } from '../../lib/ports/log.ts'
import type { Store } from '../../lib/ports/store.ts'
import type { LogControls, LogSubject } from '../../lib/testing/contracts/log-subject.ts'

/** Records of a range of a log, as plain values. */
export async function placedRecords(
  log: LogSource,
  partition: number,
  start: bigint,
  end: bigint,
): Promise<PlacedRecord[]> {
  const records: PlacedRecord[] = []
  for await (const batch of log.read({ partition, start, end })) records.push(...placedOf(batch))
  return records
}

/** The event that a mapping makes of records. */
export function eventOf(topic: string, partition: number, records: readonly PlacedRecord[]): unknown {
  const shown = records.map(({ offset, timestampMs, key, value, headers }) => ({
    topic,
    partition,
    offset: Number(offset),
    timestamp: timestampMs,
    timestampType: 'CREATE_TIME',
    ...(key === null ? {} : { key: key.toString('base64') }),
    ...(value === null ? {} : { value: value.toString('base64') }),
    headers: headers.map(([name, bytes]) => ({ [name]: bytes === null ? null : [...bytes] })),
  }))
  return { eventSource: 'aws:kafka', records: { [`${topic}-${partition}`]: shown } }
}

/** A client of the intake of `lines`, over a broker that only its recovery sees. */
export async function intakeSubject(store: Store, broker: ReturnType<typeof memoryLog>): Promise<LogSubject> {
  const log = openIntakeLog(store, 'p', 'lines')
  const recover = async () => {
    const { partitions } = await broker.bounds()
    const endsBefore = new Map(partitions.map(({ partition, end }) => [partition, end]))
    await recoverIntake({ log, broker, start: { at: 'earliest' }, committed: new Map(), endsBefore })
  }
  await recover()
  const controls: LogControls = {
    async hole(partition, offsets) {
      broker.skip(partition, BigInt(offsets))
      await recover()
    },
    async loseBefore(partition, offset) {
      await log.retain?.(new Map([[partition, offset]]))
    },
    async grow(partitions) {
      broker.grow(partitions)
      await recover()
    },
  }
  const client: LogSubject['log'] = {
    bounds: () => log.bounds(),
    resolve: (position) => log.resolve(position),
    read: (range) => log.read(range),
    close: () => log.close(),
    async append(partition, records) {
      const { baseOffset } = await broker.append(partition, records)
      const placed = await placedRecords(broker, partition, baseOffset, baseOffset + BigInt(records.length))
      if (placed.length > 0) await log.lay({ topic: 'lines', partition, records: placed }, null)
      return { baseOffset }
    },
  }
  return { log: client, controls }
}

const resolved = 'the broker resolves the start position, once, when the topic is described'
const recreated = 'the broker is asked, and a topic that was created again is refused'

/** What the intake does not do. */
export const intakeDifferences: Readonly<Record<string, string>> = {
  'resolves earliest and latest': resolved,
  'resolves a timestamp to the first record that is no older': resolved,
  'takes a timestamp out of order where it stands': resolved,
  'case 38: takes offsets as they are given, to the last digit': resolved,
  'refuses offsets that are outside, missing, of no partition, or no numbers': resolved,
  'refuses offsets that it lost': resolved,
  'refuses a group that it does not know': resolved,
  'has another topic id once it was recreated, and is empty': recreated,
  'says that a deleted topic is missing': recreated,
}
