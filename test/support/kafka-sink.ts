/**
 * What tests of the Kafka sink share: a rig that stages and promotes epochs as the engine would, a reader that
 * sees what consumers see, and links that lose, hold or refuse requests.
 */
import { randomUUID } from 'node:crypto'
import { securityOf } from '../../lib/adapters/kafka/auth.ts'
import { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import type { KafkaLink } from '../../lib/adapters/kafka/link.ts'
import { type SinkIdentity, transactionalId } from '../../lib/adapters/kafka/names.ts'
import { fetchCommitted, listOffset } from '../../lib/adapters/kafka/partition-requests.ts'
import { type KafkaSinkOptions, openKafkaSink } from '../../lib/adapters/kafka/sink.ts'
import type { WireRequest } from '../../lib/adapters/kafka/wire.ts'
import { type MemoryStore, memoryStore } from '../../lib/adapters/memory/store.ts'
import { headersOf } from '../../lib/adapters/shared/headers.ts'
import { isPawlError, PawlError } from '../../lib/model/errors.ts'
import type { CommitPermit, Committable, Marker, StagedPart } from '../../lib/model/manifest.ts'
import { decodeBatches } from '../../lib/model/record-decode.ts'
import { text } from '../../lib/model/serde.ts'
import type { PromoteResult, Sink } from '../../lib/ports/sink.ts'
import type { TopicSpec } from '../../lib/ports/spec.ts'

type AnySpec = TopicSpec<unknown, unknown>

/** Text keys and values, one lane, no route. */
export function topicSpec(topic: string, spec: Partial<AnySpec> = {}): AnySpec {
  return {
    kind: 'topic',
    topic,
    key: text() as AnySpec['key'],
    value: text() as AnySpec['value'],
    start: { at: 'earliest' },
    isolation: 'read_committed',
    onLostOffsets: 'fail',
    group: null,
    lanes: 1,
    route: null,
    headers: null,
    cluster: null,
    ...spec,
  }
}

/** A connection to a plain broker. */
export function connectPlain(bootstrap: string, options: { readonly requestTimeoutMs?: number } = {}): KafkaConnection {
  return new KafkaConnection({ brokers: [bootstrap], clientId: 'test', security: securityOf({}), ...options })
}

/** One record as a `read_committed` consumer sees it. */
export interface SeenRecord {
  readonly partition: number
  readonly offset: bigint
  readonly timestampMs: number
  readonly key: string | null
  readonly value: string | null
  readonly headers: readonly (readonly [name: string, value: string | null])[]
}

/** Everything committed in a topic, up to where its partitions end now, once they are stable. */
export async function seen(link: KafkaLink, topic: string): Promise<SeenRecord[]> {
  const leaders = (await link.topics([topic])).get(topic)!.leaders
  const records: SeenRecord[] = []
  for (const [partition, leader] of leaders.entries()) {
    const offset = async (kind: 'earliest' | 'high-watermark' | 'last-stable') =>
      (await link.send(leader, listOffset(topic, partition, kind))).offset
    const end = await offset('high-watermark')
    while ((await offset('last-stable')) < end);
    for (let at = await offset('earliest'); at < end; ) {
      const answer = await link.send(leader, fetchCommitted(topic, partition, at, 4 << 20))
      const options = { partition, start: at, end, aborted: answer.aborted }
      const { batches, next } = decodeBatches(answer.records, options)
      for (const batch of batches) {
        const cut = (start: number, stop: number) => (start < 0 ? null : batch.bytes.toString('utf8', start, stop))
        for (let i = 0; i < batch.count; i++) {
          records.push({
            partition,
            offset: batch.baseOffset + BigInt(batch.offsetDeltas[i]),
            timestampMs: batch.timestamps[i],
            key: cut(batch.keyStarts[i], batch.keyEnds[i]),
            value: cut(batch.valueStarts[i], batch.valueEnds[i]),
            headers: headersOf(batch, i).map(([name, value]) => [name, value === null ? null : String(value)]),
          })
        }
      }
      if (next <= at) break
      at = next
    }
  }
  return records
}

/** Values that consumers see, sorted. */
export async function seenValues(link: KafkaLink, topic: string): Promise<(string | null)[]> {
  return (await seen(link, topic)).map(({ value }) => value).sort()
}

/** A row as tests write it. */
export type TestRow = readonly [key: unknown, value: unknown, timestampMs?: number, partition?: number]

/** A sink with a store and, in place of a ledger, the markers that its lanes ought to have. */
export interface SinkRig {
  readonly sink: Sink
  readonly store: MemoryStore
  readonly identity: SinkIdentity
  readonly incarnation: string
  /** Base markers for all lanes. */
  base(): Promise<Marker[]>
  /** Stages one epoch in as many invocations as there are lists of rows, and takes it for committed. */
  stage(epoch: number, ...invocations: readonly (readonly TestRow[])[]): Promise<Committable[]>
  promote(committable: Committable): Promise<PromoteResult>
  /** Another process on the same pipeline. */
  twin(link: KafkaLink, options?: Partial<KafkaSinkOptions>): Promise<SinkRig>
}

export function markerOf(incarnation: string, epoch: number): Marker {
  return { incarnation, epoch, hash: `hash-of-${epoch}` }
}

export function permitFor(incarnation: string, epoch: number): CommitPermit {
  const manifest = { name: 'manifest', bytes: 1, sha256: `hash-of-${epoch}` }
  return { incarnation, epoch, manifest } as CommitPermit
}

export async function sinkRig(
  link: KafkaLink,
  spec: AnySpec,
  options: Partial<KafkaSinkOptions> & { readonly incarnation?: string } = {},
): Promise<SinkRig> {
  const identity = options.identity ?? { stage: 'test', pipeline: randomUUID(), sink: 'out' }
  const store = memoryStore()
  return rigOf(link, spec, { identity, store, ...options }, options.incarnation ?? randomUUID(), store, new Map())
}

async function rigOf(
  link: KafkaLink,
  spec: AnySpec,
  options: Omit<KafkaSinkOptions, 'spec'>,
  incarnation: string,
  store: MemoryStore,
  last: Map<number, Marker>,
): Promise<SinkRig> {
  const sink = await openKafkaSink(link, { ...options, spec })
  const { identity } = options
  const lanes = Array.from({ length: spec.lanes }, (_, lane) => lane)
  return {
    sink,
    store,
    identity,
    incarnation,
    base: async () => {
      const markers: Marker[] = []
      for (const lane of lanes) {
        markers.push(await sink.base(lane, markerOf(incarnation, 0)))
        last.set(lane, markers[lane])
      }
      return markers
    },
    stage: async (epoch, ...invocations) => {
      const parts: StagedPart[] = []
      for (const rows of invocations) {
        const prefix = `${randomUUID()}/`
        const writer = await sink.stage({ store, prefix, incarnation, epoch, lanes: spec.lanes })
        for (const [key, value, timestampMs, partition] of rows)
          writer.add(key, value, timestampMs ?? 0, partition ?? 0)
        parts.push(...(await writer.seal()))
      }
      return lanes.flatMap((lane): Committable[] => {
        const own = parts.filter((part) => part.lane === lane)
        if (own.length === 0) return []
        const rows = own.reduce((sum, part) => sum + part.rows, 0)
        const bytes = own.reduce((sum, part) => sum + part.bytes, 0)
        const prev = last.get(lane)!
        last.set(lane, markerOf(incarnation, epoch))
        return [{ sink: identity.sink, lane, target: sink.target, epoch, prev, parts: own, rows, bytes }]
      })
    },
    promote: (committable) => sink.promote(committable, permitFor(incarnation, committable.epoch)),
    twin: (other, more) => rigOf(other, spec, { ...options, ...more }, incarnation, store, last),
  }
}

/** The transactional id of a rig's lane. */
export function idOf(rig: SinkRig, lane = 0): string {
  return transactionalId(rig.identity, lane)
}

/** What a disturbed link does with one request: `act` sends it; `index` counts requests since `disturb`. */
export type Disturbance = <T>(request: WireRequest<T>, act: () => Promise<T>, index: number) => Promise<T>

/** A link that behaves until it is told not to. */
export interface DisturbedLink extends KafkaLink {
  disturb(disturbance: Disturbance): void
}

export function disturbedLink(link: KafkaLink): DisturbedLink {
  let disturbance: Disturbance = (_request, act) => act()
  let index = 0
  return {
    send: (broker, request, timeoutMs) => disturbance(request, () => link.send(broker, request, timeoutMs), index++),
    topics: (names) => link.topics(names),
    disturb: (next) => {
      disturbance = next
      index = 0
    },
  }
}

/** Promotes until it is clear what became of it, as the engine does. */
export async function settled(rig: SinkRig, committable: Committable): Promise<PromoteResult> {
  for (;;) {
    try {
      return await rig.promote(committable)
    } catch (error) {
      if (!isPawlError(error) || error.kind !== 'Retryable') throw error
    }
  }
}

/** What can befall one request. */
export const faults = [
  'the request is not sent',
  'its answer is lost',
  'the process dies before it',
  'the process dies after it',
] as const

/**
 * Strikes at one request; a dead process sends nothing more, not even an abort. A question that is asked again until a
 * transaction has come to its end counts once, for how often it is asked is chance.
 */
export function striking(fault: (typeof faults)[number], at: number, onStrike: (name: string) => void): Disturbance {
  let dead = false
  let index = -1
  let previous = ''
  return async (request, act) => {
    if (dead) throw new PawlError('BROKER_UNREACHABLE', 'the process is dead')
    const again = request.apiName === 'DescribeTransactions' && previous === request.apiName
    if (!again) index++
    previous = request.apiName
    if (index !== at || again) return act()
    onStrike(request.apiName)
    dead = fault.startsWith('the process')
    const sent = fault.endsWith('lost') || fault.endsWith('after it')
    if (sent) await act()
    throw new PawlError(sent ? 'UNKNOWN_RESULT' : 'BROKER_UNREACHABLE', request.apiName)
  }
}
