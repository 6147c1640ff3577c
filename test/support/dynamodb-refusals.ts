/**
 * A table of DynamoDB that refuses rows, and can be mended and broken again.
 *
 * It has an index over `x`, which is text; an item whose `x` is a number is refused while the index is there. Clients
 * reach it through proxies of their own. The judge knows what was staged, reads what is recorded, and says what the
 * table must show.
 */

import assert from 'node:assert/strict'
import { DynamoDBClient, UpdateItemCommand, UpdateTableCommand } from '@aws-sdk/client-dynamodb'
import { onTestFinished } from 'vitest'
import { type DynamoOptions, dynamodb } from '../../lib/adapters/dynamodb/sink.ts'
import type { CommitPermit, Committable, RefusedRow } from '../../lib/model/manifest.ts'
import type { PromoteResult, Sink } from '../../lib/ports/sink.ts'
import type { Emulator } from './aws-emulator.ts'
import { createTable, type Item, scan } from './dynamodb-contract.ts'
import { type FaultProxy, faultProxy } from './fault-proxy.ts'
import { type RigRow, tableRig } from './table-rig.ts'

export type Options = Partial<DynamoOptions<unknown, unknown>>

/** More than any test records. */
export const allRefused = { rows: 1000, bytes: 4 * 1024 * 1024 }

/** A client with a way of its own to the table. */
export interface RefusingClient {
  readonly sink: Sink
  readonly proxy: FaultProxy
  promote(committable: Committable): Promise<PromoteResult>
}

/** A row of the test: `x` is a number where it is bad; a null value deletes. */
export const row = (key: string, v: number | null, bad = false, more: object = {}): RigRow =>
  [v === null ? null : { v, x: bad ? 1 : 'fine', ...more }, key] as const

/** A rig on a table of its own that refuses. */
export async function refusingTable(emulator: Emulator, options: Options = {}) {
  const client = new DynamoDBClient(emulator.client)
  const { keys = { k: 'S' as const } } = options
  const table = options.table ?? (await createTable(client, keys, 'x'))
  const refusedTable = options.refusedTable ?? `${table}-refused`
  const proxied = async (more: Options = {}) => {
    let body = ''
    const proxy = await faultProxy(emulator.endpoint, (_, bytes) => {
      body = bytes.toString()
    })
    const spec = dynamodb<unknown, unknown>({
      ...{ ...emulator.client, endpoint: proxy.endpoint, table, keys, onReject: 'dead-letter', refusedTable },
      ...options,
      ...more,
    })
    onTestFinished(() => proxy.close())
    return { proxy, spec, body: () => body }
  }
  const first = await proxied()
  const pipeline = `p-${table}`
  const rig = await tableRig(first.spec, { pipeline })
  await rig.sink.prepare!({ dryRun: false })
  await rig.base()
  onTestFinished(() => rig.sink.close())
  const another = async (more: Options = {}): Promise<RefusingClient> => {
    const { proxy, spec } = await proxied(more)
    const { incarnation, store } = rig
    const sink = await spec.open('rows', { pipeline, incarnation, stage: 'test', directory: null, store })
    onTestFinished(() => sink.close())
    const promote = (committable: Committable) => {
      const manifest = { name: 'manifest', bytes: 1, sha256: `hash-of-${committable.epoch}` }
      return sink.promote(committable, { incarnation, epoch: committable.epoch, manifest } as CommitPermit)
    }
    return { sink, proxy, promote }
  }
  return {
    ...{ rig, table, refusedTable, client, proxy: first.proxy, body: first.body, another },
    /** The table takes everything from now on. */
    mend: () => update(client, { TableName: table, GlobalSecondaryIndexUpdates: [{ Delete: { IndexName: 'by-x' } }] }),
    breakAgain: () => breakAgain(client, table),
    /** Makes good what the table took while it was mended: the emulator would refuse to mark such an item later. */
    async repair() {
      for (const { k } of await scan(client, table)) {
        const values = { UpdateExpression: 'SET x = :x', ExpressionAttributeValues: { ':x': { S: 'fine' } } }
        await client.send(new UpdateItemCommand({ TableName: table, Key: { k: k! }, ...values }))
      }
    },
    refused: () => rig.sink.refused!(0, allRefused),
    shown: async () => shownIn(await scan(client, table)),
    recordings: () => scan(client, refusedTable),
  }
}

function breakAgain(client: DynamoDBClient, TableName: string): Promise<void> {
  const KeySchema = [{ AttributeName: 'x', KeyType: 'HASH' as const }]
  const Create = { IndexName: 'by-x', KeySchema, Projection: { ProjectionType: 'KEYS_ONLY' as const } }
  const AttributeDefinitions = [{ AttributeName: 'x', AttributeType: 'S' as const }]
  return update(client, { TableName, AttributeDefinitions, GlobalSecondaryIndexUpdates: [{ Create }] })
}

async function update(
  client: DynamoDBClient,
  request: ConstructorParameters<typeof UpdateTableCommand>[0],
): Promise<void> {
  await client.send(new UpdateTableCommand(request))
}

/** Values as a reader takes them: without what is ours, and without tombstones. */
function shownIn(items: readonly Item[]): Record<string, number> {
  const visible = items.filter(({ k, _pawl }) => !k!.S!.startsWith('pawl#') && _pawl?.M?.d?.BOOL !== true)
  return Object.fromEntries(
    visible.map(({ k, v }) => [k!.S!, Number(v!.N)] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}

/** What the table must show after an epoch of which these rows are recorded; of a key, only its last rows may be. */
export function judged(
  before: Readonly<Record<string, number>>,
  rows: readonly RigRow[],
  recorded: readonly RefusedRow[],
): Record<string, number> {
  const after: Record<string, number> = { ...before }
  const positions = new Set(recorded.map((one) => one.row))
  assert.equal(positions.size, recorded.length, 'no row is recorded twice')
  for (const key of new Set(rows.map((one) => one[1] as string))) {
    const mine = rows.flatMap(([value, of], index) => (of === key ? [{ value, index }] : []))
    const last = mine.findLast(({ index }) => !positions.has(index))
    const early = mine.filter(({ index }) => positions.has(index) && index < (last?.index ?? -1))
    assert.deepEqual(early, [], 'no row is recorded before one that is shown')
    if (last === undefined) continue
    if (last.value === null) delete after[key]
    else after[key] = (last.value as { readonly v: number }).v
  }
  return Object.fromEntries(Object.entries(after).sort(([a], [b]) => (a < b ? -1 : 1)))
}
