/**
 * A ledger in a table of DynamoDB.
 *
 * The head is one item, replaced as a whole under a condition on its revision; a commit adds its history item in the
 * same transaction. All reads are strongly consistent. A ring that is repeated after a lost answer may count twice,
 * which the port allows. Rings and closing runs meet in one transaction, so neither passes the other unseen.
 */
import type { HistoryItem } from '../../model/head.ts'
import type { Ledger } from '../../ports/ledger.ts'
import { tryAgain } from '../shared/aws.ts'
import { assertCreatable, assertEpochRange, assertSwappable } from '../shared/head-writes.ts'
import {
  type DynamoLedgerOptions,
  deedOn,
  epochKey,
  headKey,
  historyKey,
  historyPartition,
  type Key,
  lazyTable,
  pipelinesPartition,
  type Table,
  wakesKey,
} from './client.ts'
import { type Attributes, epochOf, headOf } from './items.ts'
import { judgeWrite, putFirstHead, replaceHead } from './write.ts'

export type { DynamoLedgerOptions } from './client.ts'

/**
 * The ledger in a table. No call is made before it is used.
 *
 * Calls throw `LEDGER_UNAVAILABLE`, for a write whose outcome is open `UNKNOWN_RESULT`, and `LEDGER_DAMAGED`,
 * `LEDGER_TOO_NEW`, `HEAD_TOO_LARGE`, `AWS_ACCESS_DENIED`, `AWS_RESOURCE_MISSING`, `PACKAGE_MISSING`.
 */
export function dynamoLedger(options: DynamoLedgerOptions): Ledger {
  const table = lazyTable(options)
  return {
    async read(pipeline) {
      const item = await getItem(await table.open(), headKey(pipeline), `read the head of ${pipeline}`)
      return item === undefined ? null : headOf(item, pipeline, options.table)
    },
    async create(head, history) {
      assertCreatable(head, history)
      return putFirstHead(await table.open(), head, history)
    },
    async swap(expected, head, swapOptions) {
      assertSwappable(expected, head, swapOptions)
      return replaceHead(await table.open(), expected, head, swapOptions ?? {})
    },
    async history(pipeline, epoch) {
      const key = historyKey(pipeline, epoch)
      const item = await getItem(await table.open(), key, `read epoch ${epoch} of ${pipeline}`)
      return item === undefined ? null : epochOf(item, epoch, pipeline, options.table)
    },
    async histories(pipeline, from, to) {
      assertEpochRange(from, to)
      return to <= from ? [] : queryEpochs(await table.open(), pipeline, from, to)
    },
    async ring(pipeline) {
      return addWake(await table.open(), pipeline)
    },
    async wakes(pipeline) {
      const item = await getItem(await table.open(), wakesKey(pipeline), `read the wake counter of ${pipeline}`)
      return Number(item?.wakes?.N ?? 0)
    },
    async pipelines() {
      const opened = await table.open()
      const items = await query(opened, 'list the pipelines', {
        KeyConditionExpression: 'pk = :pk',
        ExpressionAttributeValues: { ':pk': { S: pipelinesPartition } },
      })
      return items.map((item) => item.sk!.S!).sort()
    },
    close: table.close,
  }
}

async function getItem(table: Table, Key: Key, text: string): Promise<Attributes | undefined> {
  const { sdk, client, name: TableName } = table
  const { Item } = await tryAgain(deedOn(table, text, false), () =>
    client.send(new sdk.GetItemCommand({ TableName, Key, ConsistentRead: true })),
  )
  return Item as Attributes | undefined
}

async function addWake(table: Table, pipeline: string): Promise<number> {
  const { sdk, client, name: TableName } = table
  const deed = { ...deedOn(table, `ring ${pipeline}`, true), judge: judgeWrite }
  const { Attributes: after } = await tryAgain(deed, () =>
    client.send(
      new sdk.UpdateItemCommand({
        TableName,
        Key: wakesKey(pipeline),
        UpdateExpression: 'ADD wakes :one',
        ExpressionAttributeValues: { ':one': { N: '1' } },
        ReturnValues: 'UPDATED_NEW',
      }),
    ),
  )
  return Number(after!.wakes!.N)
}

interface KeyCondition {
  readonly KeyConditionExpression: string
  readonly ExpressionAttributeValues: Record<string, { S: string }>
}

/** All pages; a page ends at 1 MB. */
async function query(table: Table, text: string, condition: KeyCondition): Promise<Attributes[]> {
  const { sdk, client, name: TableName } = table
  const items: Attributes[] = []
  let from: Record<string, never> | undefined
  do {
    const page = await tryAgain(deedOn(table, text, false), () =>
      client.send(new sdk.QueryCommand({ TableName, ...condition, ConsistentRead: true, ExclusiveStartKey: from })),
    )
    items.push(...((page.Items ?? []) as Attributes[]))
    from = page.LastEvaluatedKey as Record<string, never> | undefined
  } while (from !== undefined)
  return items
}

async function queryEpochs(table: Table, pipeline: string, from: number, to: number): Promise<HistoryItem[]> {
  const items = await query(table, `list epochs of ${pipeline}`, {
    KeyConditionExpression: 'pk = :pk AND sk BETWEEN :from AND :last',
    ExpressionAttributeValues: {
      ':pk': { S: historyPartition(pipeline) },
      ':from': { S: epochKey(from) },
      ':last': { S: epochKey(to - 1) },
    },
  })
  return items.map((item) => epochOf(item, Number(item.sk!.S), pipeline, table.name))
}
