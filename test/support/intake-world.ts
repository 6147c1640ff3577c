/**
 * A simulated world in which the pipeline reads an intake, and a mapping that nobody should have to trust.
 *
 * The logs of the world stand for the broker. Whenever a process looks how far its input reaches, the mapping first
 * delivers what it likes: batches doubled, overlapping, in any order, some never; and sometimes the broker is asked.
 * All of it passes the gates of that process, so that a fault may strike at each of its port calls.
 */
import { openIntakeLog } from '../../lib/adapters/segments/intake-log.ts'
import type { Job } from '../../lib/epoch/job.ts'
import type { Prng } from '../../lib/model/prng.ts'
import { layDown, recover } from '../../lib/places/intake.ts'
import type { LogBounds, LogSource } from '../../lib/ports/log.ts'
import type { Place } from '../../lib/ports/place.ts'
import { StateCache } from '../../lib/state/cache.ts'
import type { Compiled } from '../../lib/stream/compiled.ts'
import type { Sabotage } from '../../lib/testing/actor.ts'
import { placedRecords } from './intake.ts'

/** What a mapping did, all in all. */
export interface Mapped {
  delivered: number
  lost: number
  recovered: number
}

/** A batch of a partition that holds `[start, end)`. */
export interface Delivery {
  readonly partition: number
  readonly start: bigint
  readonly end: bigint
}

/** Chooses what is delivered next, and whether the broker is asked. */
export interface Mapping {
  deliveries(bounds: LogBounds): readonly Delivery[]
  asks(): boolean
}

/** Puts an intake between the logs of the world and its pipeline. */
export function intakeOf(compiled: Compiled, mapping: Mapping, mapped: Mapped): Sabotage {
  const ends = new Map<string, ReadonlyMap<number, bigint>>()
  return {
    place(place) {
      const { pipeline } = compiled.topology
      const brokerOf = (id: string) => place.source(pipeline, id, compiled.sources[id]!, '')
      return {
        ...place,
        async source(_pipeline, id, { topic }) {
          const broker = await brokerOf(id)
          const log = openIntakeLog(place.store, pipeline, topic)
          const job: Job = { compiled, place, states: new StateCache(), warm: new Map() }
          return {
            async bounds() {
              // What fails is tried again by whoever sent it, at the next look.
              if (mapping.asks()) await ask(job, brokerOf, ends, mapped).catch(() => {})
              await befall(job, topic, broker, mapping, mapped).catch(() => {})
              return log.bounds()
            },
            resolve: (position) => log.resolve(position),
            read: (range) => log.read(range),
            retain: (from) => log.retain!(from),
            close: () => log.close(),
          } satisfies LogSource
        },
      } satisfies Place
    },
  }
}

async function befall(job: Job, topic: string, broker: LogSource, mapping: Mapping, mapped: Mapped): Promise<void> {
  for (const { partition, start, end } of mapping.deliveries(await broker.bounds())) {
    const records = await placedRecords(broker, partition, start, end)
    if (records.length === 0) continue
    await layDown(job, [{ topic, partition, records }])
    mapped.delivered++
  }
}

async function ask(
  job: Job,
  open: (source: string) => Promise<LogSource>,
  ends: Map<string, ReadonlyMap<number, bigint>>,
  mapped: Mapped,
): Promise<void> {
  const recovered = await recover(job, { open, ends })
  mapped.recovered += Object.values(recovered).reduce((sum, { ranges }) => sum + ranges.length, 0)
}

/** Draws batches from all over the log, and loses some. */
export function hostileMapping(random: Prng, mapped: Mapped): Mapping {
  const drawn = ({ partition, start, end }: LogBounds['partitions'][number]): Delivery[] => {
    const span = Number(end - start)
    return Array.from({ length: span === 0 ? 0 : random.int(4) }, () => {
      const from = start + BigInt(random.int(span))
      const until = from + BigInt(1 + random.int(12))
      const delivery = { partition, start: from, end: until < end ? until : end }
      if (!random.chance(0.2)) return random.chance(0.3) ? [delivery, delivery] : [delivery]
      mapped.lost++
      return []
    }).flat()
  }
  return { deliveries: ({ partitions }) => partitions.flatMap(drawn), asks: () => random.chance(0.4) }
}
