/**
 * The event intake of a deployed pipeline: takes events in, and asks the brokers for what events lack.
 *
 * Composition root of two functions. The trigger takes in and answers only when everything is durable; recover runs
 * by schedule where the brokers can be reached. Operators and planner read what both laid down, and reach no broker.
 */
import { openIntakeLog } from '../adapters/segments/intake-log.ts'
import { type Recovered, recoverIntake } from '../adapters/segments/intake-recover.ts'
import { type Job, readManifest } from '../epoch/job.ts'
import { batchesOf, type PartitionBatch } from '../model/mapping-event.ts'
import type { LogSource } from '../ports/log.ts'

/** Offsets from which the pipeline goes on, by source and partition. */
type Committed = ReadonlyMap<string, ReadonlyMap<number, bigint>>

/**
 * Lays down what an event of a mapping brought; returns how many records, 0 for any other event. Throws
 * `INTAKE_EVENT_INVALID`, `INTAKE_CONFLICT`, and what store and ledger throw: the mapping sends the event again.
 */
export async function takeIn(job: Job, event: unknown): Promise<number> {
  return layDown(job, batchesOf(event) ?? [])
}

/** Lays batches down; those of topics that the pipeline does not read are left alone. Throws as `takeIn`. */
export async function layDown(job: Job, batches: readonly PartitionBatch[]): Promise<number> {
  const { topology, sources } = job.compiled
  const known = batches.flatMap((batch) => {
    const found = Object.entries(sources).find(([, { topic, cluster }]) => topic === batch.topic && cluster === null)
    return found === undefined ? [] : [{ batch, source: found[0] }]
  })
  if (known.length === 0) return 0
  const committed = await committedOf(job)
  const laid = known.map(({ batch, source }) => {
    const log = openIntakeLog(job.place.store, topology.pipeline, batch.topic)
    return log.lay(batch, committed?.get(source)?.get(batch.partition) ?? null)
  })
  // All of them come to an end before any failure is told: nothing goes on behind the answer.
  const failed = (await Promise.allSettled(laid)).find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return known.reduce((sum, { batch }) => sum + batch.records.length, 0)
}

/** Where the brokers are, and what they said last time; kept warm by whoever asks again. */
export interface Brokers {
  open(source: string): Promise<LogSource>
  readonly ends: Map<string, ReadonlyMap<number, bigint>>
}

/** Describes topics and fills gaps, source by source. Throws what `recoverIntake` throws, for the first one. */
export async function recover(job: Job, brokers: Brokers): Promise<Readonly<Record<string, Omit<Recovered, 'ends'>>>> {
  const { topology, sources } = job.compiled
  const recovered: Record<string, Omit<Recovered, 'ends'>> = {}
  const committed = await committedOf(job)
  const faults: unknown[] = []
  for (const [source, { topic, cluster, start }] of Object.entries(sources)) {
    if (cluster !== null) continue
    try {
      const { ends, ...done } = await recoverIntake({
        log: openIntakeLog(job.place.store, topology.pipeline, topic),
        broker: await brokers.open(source),
        start,
        committed: committed?.get(source) ?? new Map(),
        endsBefore: brokers.ends.get(source) ?? new Map(),
      })
      brokers.ends.set(source, ends)
      recovered[source] = done
    } catch (error) {
      faults.push(error)
    }
  }
  if (faults.length > 0) throw faults[0]
  return recovered
}

async function committedOf(job: Job): Promise<Committed | null> {
  const head = await job.place.ledger.read(job.compiled.topology.pipeline)
  if (head === null) return null
  const { progress } = await readManifest(job, head.committed.manifest)
  const committed = new Map<string, Map<number, bigint>>()
  for (const { source, partition, end } of progress) {
    const known = committed.get(source) ?? new Map<number, bigint>()
    committed.set(source, known.set(partition, BigInt(end)))
  }
  return committed
}
