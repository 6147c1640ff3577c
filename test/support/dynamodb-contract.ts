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
import { type DynamoOptions, dynamodb } from '../../lib/adapters/dynamodb/sink.ts'
import { type DynamoForm, type DynamoMode, type KeyType, markerPlace } from '../../lib/adapters/dynamodb/sink-form.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { laneOf } from '../../lib/adapters/shared/lanes.ts'
import { PawlError } from '../../lib/model/errors.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
} from '../../lib/testing/contracts/sink-subject.ts'
import type { Emulator } from './aws-emulator.ts'
import { stagingControls } from './table-contract.ts'

export type Item = Record<string, AttributeValue>

/** A new table with these keys; returns its name. */
export async function createTable(client: DynamoDBClient, keys: Readonly<Record<string, KeyType>>): Promise<string> {
  const TableName = `rows-${randomBytes(6).toString('hex')}`
  const named = Object.entries(keys)
  await client.send(
    new CreateTableCommand({
      TableName,
      BillingMode: BillingMode.PAY_PER_REQUEST,
      KeySchema: named.map(([AttributeName], index) => ({ AttributeName, KeyType: index === 0 ? 'HASH' : 'RANGE' })),
      AttributeDefinitions: named.map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
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

/** A place for one case. */
export async function freshDynamo(emulator: Emulator, mode: DynamoMode) {
  const client = new DynamoDBClient(emulator.client)
  const keys = { pk: 'S', n: 'N' } as const
  const table = await createTable(client, keys)
  const store = memoryStore()
  const options: DynamoOptions<unknown, Wrapped> = {
    ...emulator.client,
    table,
    keys,
    mode,
    lanes: contractLanes,
    item: ({ v, ...item }) => ({ ...item, v: contractRowSpec.value.encode(v) }),
  }
  const opened: Sink[] = []
  const controls: SinkControls = { ...controlsOf(client, table, keys), ...stagingControls(store) }
  return {
    async open(): Promise<SinkSubject> {
      const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store }
      const sink = await dynamodb(options).open('rows', context)
      opened.push(sink)
      return { sink: wrapped(sink), store, controls }
    },
    async dispose() {
      for (const sink of opened) await sink.close()
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
      const rows = (await scan(client, table)).filter(({ pk }) => !pk!.S!.startsWith('pawl#'))
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
