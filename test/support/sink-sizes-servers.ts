/**
 * The sinks of `sink-sizes.ts` that need a server: one row each, made with the server that a test or a measurement has.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import { doris } from '../../lib/adapters/doris/sink.ts'
import { dynamodb } from '../../lib/adapters/dynamodb/sink.ts'
import type { DynamoMode } from '../../lib/adapters/dynamodb/sink-form.ts'
import { listOffset } from '../../lib/adapters/kafka/partition-requests.ts'
import { openKafkaSink } from '../../lib/adapters/kafka/sink.ts'
import { mysql } from '../../lib/adapters/mysql/sink.ts'
import { postgres } from '../../lib/adapters/postgres/sink.ts'
import { redis } from '../../lib/adapters/redis/sink.ts'
import type { FileFormat } from '../../lib/adapters/s3/file-encoders.ts'
import { s3Files } from '../../lib/adapters/s3/files.ts'
import type { Serde } from '../../lib/model/serde.ts'
import { contractLanes, contractRowSpec } from '../../lib/testing/contracts/sink-subject.ts'
import type { Emulator } from './aws-emulator.ts'
import { createTable } from './dynamodb-contract.ts'
import type { Broker } from './kafka-broker.ts'
import { connectPlain, topicSpec } from './kafka-sink.ts'
import { freshTopic } from './kafka-topics.ts'
import type { MariaDb } from './mariadb-server.ts'
import type { Postgres } from './postgres-server.ts'
import type { RedisServer } from './redis-server.ts'
import { bucketView, fileLists } from './s3-contract.ts'
import { littleHeld, measured, opened } from './sink-sizes.ts'
import { contractRow } from './table-contract.ts'

const textOf = (value: unknown) => contractRowSpec.value.encode(value) as string
const freshName = () => `rows_${randomUUID().slice(0, 8)}`

export const postgresSize = (server: Postgres) =>
  measured('PostgreSQL', async (store) => {
    const table = freshName()
    await server.query(`CREATE TABLE ${table} (k text, v text, ts bigint)`)
    const spec = postgres({ connection: server.url, table, lanes: contractLanes, row: contractRow })
    const count = async () => Number((await server.query(`SELECT count(*)::int AS count FROM ${table}`))[0]!.count)
    return { sink: await opened(spec, store), count, heldBytesMax: littleHeld }
  })

export const mariaDbSize = (server: MariaDb) =>
  measured('MariaDB', async (store) => {
    const table = freshName()
    await server.query(`CREATE TABLE ${table} (n bigint AUTO_INCREMENT PRIMARY KEY, k text, v text, ts bigint)`)
    const spec = mysql({ connection: server.url, table, lanes: contractLanes, row: contractRow })
    const count = async () => Number((await server.query(`SELECT count(*) AS count FROM ${table}`))[0]!.count)
    return { sink: await opened(spec, store), count, heldBytesMax: littleHeld }
  })

/** A script is one request: all arguments at once. */
export const redisSize = (server: RedisServer, type: 'stream' | 'string') =>
  measured(`Redis, ${type}`, async (store) => {
    const key = `{${randomUUID()}}:`
    const client = server.connect()
    const spec = redis<unknown, unknown>({
      connection: server.url,
      type,
      key,
      ...(type === 'string' ? { member: (value: unknown) => textOf(value).slice(0, 7) } : {}),
      keys: contractRowSpec.key as Serde<unknown>,
      value: contractRowSpec.value as Serde<unknown>,
    })
    const sink = await opened(spec, store)
    return {
      sink,
      count: async () => (type === 'stream' ? client.xlen(key) : (await client.keys(`${key}[0-9]*`)).length),
      heldBytesMax: { promote: 2 * sink.limits.laneBytesMax },
      async close() {
        client.disconnect()
      },
    }
  })

export const kafkaSize = (broker: Broker) =>
  measured('Kafka', async (store) => {
    const topic = await freshTopic(broker)
    const link = connectPlain(broker.bootstrap)
    const identity = { stage: 'size', pipeline: randomUUID(), sink: 'rows' }
    const spec = topicSpec(topic, { ...contractRowSpec, topic, lanes: contractLanes })
    return {
      sink: await openKafkaSink(link, { spec, identity, store }),
      // One transaction leaves one mark of its commit beside the rows.
      async count() {
        const leader = (await link.topics([topic])).get(topic)!.leaders[0]!
        return Number((await link.send(leader, listOffset(topic, 0, 'last-stable'))).offset) - 1
      },
      close: () => link.close(),
    }
  })

export const filesSize = (emulator: Emulator, format: FileFormat) =>
  measured(`S3 files, ${format}`, async (store) => {
    const view = await bucketView(emulator)
    const prefix = 'a/rows/'
    const spec = s3Files<unknown, unknown>({
      ...emulator.client,
      forcePathStyle: true,
      bucket: view.name,
      prefix,
      format,
      lanes: contractLanes,
      columns: { k: 'string', v: 'string', ts: 'long' },
      row: (value, key, timestampMs) => ({ k: key, v: textOf(value), ts: timestampMs }),
    })
    return {
      sink: await opened(spec, store),
      count: async () => (await fileLists(view, prefix)).reduce((sum, { rows }) => sum + rows, 0),
      close: async () => view.client.destroy(),
    }
  })

/** Only the last row of a key counts, so a lane is held. All items have one partition key, so that they take one lane. */
export const dynamoSize = (emulator: Emulator, mode: DynamoMode) =>
  measured(`DynamoDB, ${mode}`, async (store) => {
    const client = new DynamoDBClient(emulator.client)
    const keys = { pk: 'S', n: 'N' } as const
    const TableName = await createTable(client, keys)
    const spec = dynamodb<unknown, unknown>({
      ...emulator.client,
      table: TableName,
      keys,
      mode,
      lanes: contractLanes,
      item: (value) => ({ pk: 'all', n: Number(textOf(value).slice(0, 7)), v: textOf(value) }),
    })
    const sink = await opened(spec, store)
    return {
      sink,
      heldBytesMax: { promote: 2 * sink.limits.laneBytesMax },
      async count() {
        let items = 0
        let from: Record<string, unknown> | undefined
        do {
          const page = { TableName, Select: 'COUNT', FilterExpression: 'pk = :all', ConsistentRead: true } as const
          const values = { ExpressionAttributeValues: { ':all': { S: 'all' } } }
          const answer = await client.send(new ScanCommand({ ...page, ...values, ExclusiveStartKey: from as never }))
          items += answer.Count ?? 0
          from = answer.LastEvaluatedKey
        } while (from !== undefined)
        return items
      },
      close: async () => client.destroy(),
    }
  })

/** The double keeps its rows in a process of its own. */
export const dorisSize = (mode: 'insert' | 'upsert') =>
  measured(`Doris, ${mode}`, async (store) => {
    const server = fork(new URL('doris-apart.ts', import.meta.url))
    const { url } = (await messageOf(server)) as { url: string }
    const table = mode === 'insert' ? 'db.appended' : 'db.keyed'
    const spec = doris<unknown, unknown>({
      connection: url,
      table,
      mode,
      lanes: contractLanes,
      ...(mode === 'insert' ? { row: contractRow } : keyed),
    })
    return {
      sink: await opened(spec, store),
      // Of an upsert only the last row of a key is sent, so keys are held.
      heldBytesMax: mode === 'insert' ? littleHeld : { stage: 32 * 1024 * 1024, promote: 32 * 1024 * 1024 },
      async count() {
        const answer = messageOf(server)
        server.send(table)
        return ((await answer) as { rows: number }).rows
      },
      async close() {
        const ended = once(server, 'exit')
        server.disconnect()
        await ended
      },
    }
  })

/** Rows that each have a key of their own. */
const keyed = {
  key: ['k'],
  row: (value: unknown, _: unknown, ts: number) => ({ k: textOf(value).slice(0, 7), v: textOf(value), ts }),
}

async function messageOf(child: ChildProcess): Promise<unknown> {
  const [message] = await once(child, 'message')
  return message
}
