import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { markerKey } from '../../lib/adapters/redis/keys.ts'
import { redis as redisSink } from '../../lib/adapters/redis/sink.ts'
import type { Serde } from '../../lib/model/serde.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkFaultContract } from '../../lib/testing/contracts/sink-faults.ts'
import { sinkSizeContractOf } from '../../lib/testing/contracts/sink-size.ts'
import {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
} from '../../lib/testing/contracts/sink-subject.ts'
import { type CuttingProxy, cuttingBy, cuttingProxy } from '../support/cutting-proxy.ts'
import { type RedisServer, redisTest as test } from '../support/redis.ts'
import { largeRows } from '../support/sink-sizes.ts'
import { redisSize } from '../support/sink-sizes-servers.ts'
import { stagingControls } from '../support/table-contract.ts'

let server: RedisServer
let proxy: CuttingProxy

async function fresh() {
  const key = `rows-${randomUUID()}`
  const store = memoryStore()
  const client = server.connect()
  const spec = redisSink({
    connection: () => server.url.replace(`:${server.port}`, `:${proxy.port}`),
    type: 'stream',
    key,
    keys: contractRowSpec.key as Serde<unknown>,
    value: contractRowSpec.value as Serde<unknown>,
  })
  const opened: Sink[] = []
  const lane = { stage: 'test', pipeline: 'p', sink: 'rows' }
  const markers = Array.from({ length: contractLanes }, (_, index) => markerKey(key, { ...lane, lane: index }))
  const controls: SinkControls = { ...controlsOf(client, key, markers), ...stagingControls(store), disturb }
  const over = async (other: Store) => {
    const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store: other }
    const sink = await spec.open('rows', context)
    opened.push(sink)
    return sink
  }
  return {
    async open(): Promise<SinkSubject> {
      return { sink: await over(store), store, controls, over }
    },
    async dispose() {
      for (const sink of opened) await sink.close()
      client.disconnect()
    },
  }
}

function controlsOf(client: Redis, key: string, markers: readonly string[]) {
  return {
    async visible() {
      return (await client.xrange(key, '-', '+')).map(([, fields]) => {
        const entry = new Map(fields.map((field, i) => [field, fields[i + 1]] as const).filter((_, i) => i % 2 === 0))
        return {
          key: entry.get('key') ?? null,
          value: entry.get('value') ?? null,
          timestampMs: Number(entry.get('timestampMs')),
        }
      })
    },
    async backup() {
      const dumps = await Promise.all(
        [key, ...markers].map(async (name) => [name, await client.dumpBuffer(name)] as const),
      )
      return async () => {
        const restored = client.multi()
        for (const [name, dump] of dumps) {
          restored.del(name)
          if (dump !== null) restored.restore(name, 0, dump)
        }
        await restored.exec()
      }
    },
    async dropMarker(lane: number) {
      await client.del(markers[lane]!)
    },
  }
}

const disturb = cuttingBy(() => proxy)

const implementation = { name: 'Redis', fresh }
const cases = [...contractCases(sinkContract, implementation), ...contractCases(sinkFaultContract, implementation)]

for (const { name, run } of cases) {
  test(`a Redis sink: ${name}`, async ({ redis }) => {
    server = redis
    proxy = await cuttingProxy(redis.port)
    await expect(run().finally(() => proxy.close())).resolves.toBeUndefined()
  })
}

test('a Redis sink takes the bytes of its limits in bounded memory', async ({ redis }) => {
  for (const { run } of contractCases(sinkSizeContractOf(largeRows), redisSize(redis, 'stream'))) {
    await expect(run()).resolves.toBeUndefined()
  }
})
