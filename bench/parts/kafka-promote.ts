/**
 * How fast the Kafka sink stages and promotes: `node --conditions=pawl-source bench/parts/kafka-promote.ts`.
 *
 * Needs a broker in KAFKA_BROKERS. Options: --records 1000000 --bytes 100 --partitions 4 --lanes 1 --rounds 3. Each
 * round stages one epoch in memory and promotes it, all lanes at once; printed are records a
 * second of wall clock and of CPU for each half.
 */
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { securityOf } from '../../lib/adapters/kafka/auth.ts'
import { KafkaConnection } from '../../lib/adapters/kafka/connection.ts'
import { openKafkaSink } from '../../lib/adapters/kafka/sink.ts'
import { createTopic } from '../../lib/adapters/kafka/topic-requests.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import type { CommitPermit, Committable, Marker } from '../../lib/model/manifest.ts'
import { text } from '../../lib/model/serde.ts'
import type { TopicSpec } from '../../lib/ports/spec.ts'

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    bytes: { type: 'string', default: '100' },
    partitions: { type: 'string', default: '4' },
    lanes: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '3' },
  },
})
const [records, bytes, partitions, lanes, rounds] = [
  values.records,
  values.bytes,
  values.partitions,
  values.lanes,
  values.rounds,
].map(Number)
const flushBytes = 8 * 1024 * 1024

const brokers = process.env.KAFKA_BROKERS
if (!brokers) throw new Error('KAFKA_BROKERS is not set')
const link = new KafkaConnection({ brokers: brokers.split(','), clientId: 'bench', security: securityOf({}) })
const topic = `bench-${randomUUID()}`
await link.send('controller', createTopic(topic, partitions, {}, 30_000))
while ((await link.topics([topic])).get(topic)?.leaders.length !== partitions);

const spec: TopicSpec<unknown, unknown> = {
  kind: 'topic',
  topic,
  key: text() as TopicSpec<unknown, unknown>['key'],
  value: text() as TopicSpec<unknown, unknown>['value'],
  start: { at: 'earliest' },
  isolation: 'read_committed',
  onLostOffsets: 'fail',
  group: null,
  lanes,
  route: null,
  headers: null,
  cluster: null,
}
const store = memoryStore()
const incarnation = randomUUID()
const sink = await openKafkaSink(link, { spec, identity: { stage: 'bench', pipeline: topic, sink: 'out' }, store })
const last: Marker[] = []
for (let lane = 0; lane < lanes; lane++) last.push(await sink.base(lane, { incarnation, epoch: 0, hash: 'genesis' }))

const value = 'x'.repeat(bytes)
for (let epoch = 1; epoch <= rounds; epoch++) {
  const committables: Committable[] = []
  const staged = await measured('stage', async () => {
    const writer = await sink.stage({ store, prefix: `e${epoch}/`, incarnation, epoch, lanes })
    for (let i = 0; i < records; i++) {
      writer.add(`key-${i % 10_000}`, value, 1_700_000_000_000 + i, 0)
      if (writer.bufferedBytes > flushBytes) await writer.flush()
    }
    for (const part of await writer.seal())
      committables.push({
        sink: 'out',
        lane: part.lane,
        target: sink.target,
        epoch,
        prev: last[part.lane],
        parts: [part],
        rows: part.rows,
        bytes: part.bytes,
      })
  })
  const permit = { incarnation, epoch, manifest: { name: 'm', bytes: 1, sha256: `hash-${epoch}` } } as CommitPermit
  const promoted = await measured('promote', async () => {
    const results = await Promise.all(committables.map((committable) => sink.promote(committable, permit)))
    if (results.some(({ result }) => result !== 'promoted')) throw new Error(JSON.stringify(results))
  })
  for (const { lane } of committables) last[lane] = { incarnation, epoch, hash: `hash-${epoch}` }
  await store.delete(store.names())
  process.stdout.write(`${JSON.stringify({ epoch, records, lanes, ...staged, ...promoted })}\n`)
}
await sink.close()
await link.close()

async function measured(name: string, work: () => Promise<void>): Promise<Record<string, number>> {
  const cpu = process.cpuUsage()
  const start = performance.now()
  await work()
  const wallMs = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  return {
    [`${name}Ms`]: Math.round(wallMs),
    [`${name}PerSecond`]: Math.round((records / wallMs) * 1000),
    [`${name}PerCpuSecond`]: Math.round((records / (user + system)) * 1e6),
  }
}
