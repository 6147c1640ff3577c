/**
 * The sink contract against tables of DynamoDB.
 *
 * A table keeps one item a key, the contract looks at a log of rows. So a row becomes an item of its own: its partition
 * key is the row's key (or one that takes the lane of the source partition), its sort key counts up. As precommit does, a
 * committable beyond the sink's limits is refused before it is promoted.
 */
import { randomBytes } from 'node:crypto'
import {
  type AttributeValue,
  BatchWriteItemCommand,
  BillingMode,
  CreateTableCommand,
  DeleteItemCommand,
  DynamoDBClient,
  PutItemCommand,
  ScanCommand,
} from '@aws-sdk/client-dynamodb'
import { dynamodb } from '../../lib/adapters/dynamodb/sink.ts'
import { type DynamoForm, type DynamoMode, type KeyType, markerPlace } from '../../lib/adapters/dynamodb/sink-form.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { laneOf } from '../../lib/adapters/shared/lanes.ts'
import { PawlError } from '../../lib/model/errors.ts'
import type { RejectPolicy, Sink } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import { refusedValue } from '../../lib/testing/contracts/sink-refusals.ts'
import {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
} from '../../lib/testing/contracts/sink-subject.ts'
import type { Emulator } from './aws-emulator.ts'
import { disturbBy, faultProxy } from './fault-proxy.ts'
import { stagingControls } from './table-contract.ts'

export type Item = Record<string, AttributeValue>

/** A new table with these keys, and an index with the one key `indexed` of type S if it is wanted; returns its name. */
export async function createTable(
  client: DynamoDBClient,
  keys: Readonly<Record<string, KeyType>>,
  indexed: string | null = null,
): Promise<string> {
  const TableName = `rows-${randomBytes(6).toString('hex')}`
  const named = Object.entries(keys)
  const attributes = indexed === null ? named : [...named, [indexed, 'S'] as const]
  const index = (AttributeName: string) => ({
    IndexName: `by-${AttributeName}`,
    KeySchema: [{ AttributeName, KeyType: 'HASH' as const }],
    Projection: { ProjectionType: 'KEYS_ONLY' as const },
  })
  await client.send(
    new CreateTableCommand({
      TableName,
      BillingMode: BillingMode.PAY_PER_REQUEST,
      KeySchema: named.map(([AttributeName], index) => ({ AttributeName, KeyType: index === 0 ? 'HASH' : 'RANGE' })),
      AttributeDefinitions: attributes.map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
      ...(indexed === null ? {} : { GlobalSecondaryIndexes: [index(indexed)] }),
    }),
  )
  return TableName
}

/** Every item of a table, markers included. */
export async function scan(client: DynamoDBClient, TableName: string): Promise<Item[]> {
  const items: Item[] = []
  let from: Item | undefined
  do {
    const page = await client.send(new ScanCommand({ TableName, ConsistentRead: true, ExclusiveStartKey: from }))
    items.push(...(page.Items ?? []))
    from = page.LastEvaluatedKey
  } while (from !== undefined)
  return items
}

/** Partition keys that take lane 0, 1, 2. */
const laneKeys = Array.from({ length: contractLanes }, (_, lane) => {
  for (let i = 0; ; i++) if (laneOf(`none-${i}`, 0, contractLanes) === lane) return `none-${i}`
})

/** A row on its way to an item. */
interface Wrapped {
  readonly pk: string
  readonly n: number
  readonly k: string | null
  readonly v: unknown
  readonly ts: number
}

/**
 * A place for one case. With dead letters its table has an index over `x`, which is text, and a number in an item whose
 * value is refused.
 */
export async function freshDynamo(emulator: Emulator, mode: DynamoMode, onReject: RejectPolicy = 'park') {
  const client = new DynamoDBClient(emulator.client)
  const proxy = await faultProxy(emulator.endpoint)
  const keys = { pk: 'S', n: 'N' } as const
  const table = await createTable(client, keys, onReject === 'park' ? null : 'x')
  const store = memoryStore()
  const spec = dynamodb<Wrapped, unknown>({
    ...{ ...emulator.client, endpoint: proxy.endpoint, table, keys, mode, onReject, refusedTable: `${table}-refused` },
    lanes: contractLanes,
    item: ({ v, ...item }) => ({ ...item, v: contractRowSpec.value.encode(v), x: v === refusedValue ? 1 : 'fine' }),
  })
  const opened: Sink[] = []
  const controls: SinkControls = {
    ...controlsOf(client, table, keys),
    ...stagingControls(store),
    disturb: disturbBy(proxy),
  }
  const over = async (other: Store) => {
    const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store: other }
    const sink = await spec.open('rows', context)
    opened.push(sink)
    return wrapped(sink)
  }
  await (await over(store)).prepare!({ dryRun: false })
  return {
    async open(): Promise<SinkSubject> {
      return { sink: await over(store), store, controls, over }
    },
    async dispose() {
      for (const sink of opened) await sink.close()
      await proxy.close()
      client.destroy()
    },
  }
}

let count = 0

function wrapped(sink: Sink): Sink {
  return {
    ...sink,
    async stage(context) {
      const writer = await sink.stage(context)
      return {
        get bufferedBytes() {
          return writer.bufferedBytes
        },
        add(key, value, timestampMs, partition) {
          const pk = key === null ? laneKeys[partition % contractLanes]! : `key ${key}`
          const row: Wrapped = { pk, n: count++, k: key as string | null, v: value, ts: timestampMs }
          writer.add(key, row, timestampMs, partition)
        },
        flush: () => writer.flush(),
        seal: () => writer.seal(),
      }
    },
    async promote(committable, permit, how) {
      if (committable.rows > sink.limits.laneRowsMax)
        throw new PawlError('EPOCH_TOO_LARGE', `${committable.rows} rows`, { rows: committable.rows })
      return sink.promote(committable, permit, how)
    },
  }
}

function controlsOf(client: DynamoDBClient, table: string, keys: Readonly<Record<string, KeyType>>) {
  const form = { table, keys: Object.entries(keys), markerTable: null } as unknown as DynamoForm
  const keyOf = ({ pk, n }: Item): Item => ({ pk: pk!, n: n! })
  return {
    async visible() {
      const items = await scan(client, table)
      const rows = items.filter(({ pk, _pawl }) => !pk!.S!.startsWith('pawl#') && _pawl?.M?.d?.BOOL !== true)
      rows.sort((a, b) => Number(a.n!.N) - Number(b.n!.N))
      return rows.map(({ k, v, ts }) => ({ key: k!.S ?? null, value: v!.S ?? null, timestampMs: Number(ts!.N) }))
    },
    async backup() {
      const before = await scan(client, table)
      return async () => {
        for (const item of await scan(client, table))
          await client.send(new DeleteItemCommand({ TableName: table, Key: keyOf(item) }))
        for (let at = 0; at < before.length; at += 25) {
          const puts = before.slice(at, at + 25).map((Item) => ({ PutRequest: { Item } }))
          await client.send(new BatchWriteItemCommand({ RequestItems: { [table]: puts } }))
        }
      }
    },
    async dropMarker(lane: number) {
      const { key } = markerPlace(form, { stage: 'test', pipeline: 'p', sink: 'rows', lane })
      await client.send(new DeleteItemCommand({ TableName: table, Key: key as Item }))
    },
  }
}

/** Puts an item behind the sink's back. */
export async function putItem(client: DynamoDBClient, TableName: string, Item: Item): Promise<void> {
  await client.send(new PutItemCommand({ TableName, Item }))
}
