/**
 * Conditional writes of a head, and what their answers mean.
 *
 * A head alone is one PutItem; with a history item or a condition on the wake counter it is one TransactWriteItems.
 * Correctness rests on the conditions alone: tokens of the client expire after ten minutes, and each try has a new
 * one. A condition that fails returns the item that is there. After a try that stayed unclear it tells whether that one
 * had succeeded, by the random id of the write; when something else is there, only the caller can find out.
 */
import { PawlError } from '../../model/errors.ts'
import type { Head } from '../../model/head.ts'
import type { SwapOptions } from '../../ports/ledger.ts'
import { answerOf, type Deed, type Tries, tryAgain, type Verdict } from '../shared/aws.ts'
import { deedOn, type Table, wakesKey } from './client.ts'
import { type Attributes, damaged, headItem, historyItem, listedItem } from './items.ts'

const isNew = 'attribute_not_exists(pk)'
const returnItem = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

/** One reason of a cancelled transaction; in the order of its writes, `None` where the write was fine. */
export interface Reason {
  readonly Code?: string
  readonly Message?: string
  readonly Item?: Attributes
}

const conditionFailed = 'ConditionalCheckFailed'
/** Somebody else was at an item, or there was no capacity: nothing was written. */
const passing = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded'])

/** Why a transaction was cancelled, a reason a write; none when that is not what happened. */
export function reasonsOf(error: unknown): readonly Reason[] {
  if (answerOf(error).name !== 'TransactionCanceledException') return []
  return (error as { readonly CancellationReasons?: readonly Reason[] }).CancellationReasons ?? []
}

/**
 * What a failed write says: every reason of a transaction counts.
 *
 * One that no other try changes outweighs one that passes. What is in progress may still be carried out.
 */
export function judgeWrite(error: unknown): Verdict | null {
  const { name } = answerOf(error)
  if (name === 'TransactionConflictException') return 'undone'
  if (name === 'TransactionInProgressException') return 'unclear'
  if (name !== 'TransactionCanceledException') return null
  const codes = reasonsOf(error).map(({ Code = 'None' }) => Code)
  if (codes.includes('AccessDenied')) return 'denied'
  const grave = codes.some((code) => code !== 'None' && code !== conditionFailed && !passing.has(code))
  if (grave) return 'refused'
  return 'undone'
}

/** The reasons of a write that was refused by a condition; null when that is not what happened. */
function refusals(error: unknown): readonly Reason[] | null {
  if (answerOf(error).name === 'ConditionalCheckFailedException') {
    return [{ Code: conditionFailed, Item: (error as { readonly Item?: Attributes }).Item }]
  }
  if (judgeWrite(error) !== 'undone') return null
  const reasons = reasonsOf(error)
  return reasons.some(({ Code }) => Code === conditionFailed) ? reasons : null
}

/** A deed whose failures are judged reason by reason. */
function writeDeed(table: Table, text: string): Deed {
  return { ...deedOn(table, text, true), judge: judgeWrite }
}

/** The first reason is always the head's. */
function outcome<T>(deed: Deed, tries: Tries, head: Head, reasons: readonly Reason[], won: T, lost: T): T {
  if (!tries.unclear) return lost
  if (reasons[0]?.Item?.write?.S === head.write) return won
  throw new PawlError('UNKNOWN_RESULT', `${deed.text}: an earlier try may have been carried out`, {
    pipeline: head.pipeline,
  })
}

/** Writes the first head of a pipeline with its first history item, and lists the pipeline. */
export async function putFirstHead(
  table: Table,
  head: Head,
  history: Parameters<typeof historyItem>[1],
): Promise<'created' | 'exists'> {
  const { sdk, client, name: TableName } = table
  const deed = writeDeed(table, `create the head of ${head.pipeline}`)
  const put = (Item: ReturnType<typeof headItem> | ReturnType<typeof historyItem>) => ({
    Put: { TableName, Item, ConditionExpression: isNew, ...returnItem },
  })
  const TransactItems = [
    put(headItem(head)),
    put(historyItem(head.pipeline, history)),
    { Put: { TableName, Item: listedItem(head.pipeline) } },
  ]
  return tryAgain(deed, async (tries) => {
    try {
      await client.send(new sdk.TransactWriteItemsCommand({ TransactItems }))
      return 'created'
    } catch (error) {
      const reasons = refusals(error)
      if (reasons === null) throw error
      if (reasons[0].Code !== conditionFailed && reasons[1]?.Code === conditionFailed) {
        throw damaged(`pipeline ${head.pipeline} has a history but no head`, TableName)
      }
      return outcome(deed, tries, head, reasons, 'created', 'exists')
    }
  })
}

/** Replaces a head whose revision is `expected`, with whatever must hold or happen in the same write. */
export async function replaceHead(
  table: Table,
  expected: number,
  head: Head,
  options: SwapOptions,
): Promise<'swapped' | 'moved'> {
  const deed = writeDeed(table, `write the head of ${head.pipeline}`)
  const send = writeOf(table, expected, head, options)
  return tryAgain(deed, async (tries) => {
    try {
      await send()
      return 'swapped'
    } catch (error) {
      const reasons = refusals(error)
      if (reasons === null) throw error
      return outcome(deed, tries, head, reasons, 'swapped', 'moved')
    }
  })
}

function writeOf(
  { sdk, client, name: TableName }: Table,
  expected: number,
  head: Head,
  { seen, history, wakes }: SwapOptions,
): () => Promise<unknown> {
  const put = {
    TableName,
    Item: headItem(head),
    ...headCheck(expected, seen),
    ...returnItem,
  }
  if (history === undefined && wakes === undefined) return () => client.send(new sdk.PutItemCommand(put))
  const TransactItems = [
    { Put: put },
    ...(history === undefined
      ? []
      : [{ Put: { TableName, Item: historyItem(head.pipeline, history), ConditionExpression: isNew } }]),
    ...(wakes === undefined ? [] : [{ ConditionCheck: wakesCheck(TableName, head.pipeline, wakes) }]),
  ]
  return () => client.send(new sdk.TransactWriteItemsCommand({ TransactItems }))
}

/** `write` is a word of DynamoDB's only in other letters, but stays out of its way. */
function headCheck(expected: number, seen: string | undefined) {
  const revision = { ':expected': { N: `${expected}` } }
  if (seen === undefined) return { ConditionExpression: 'revision = :expected', ExpressionAttributeValues: revision }
  return {
    ConditionExpression: 'revision = :expected AND #write = :seen',
    ExpressionAttributeNames: { '#write': 'write' },
    ExpressionAttributeValues: { ...revision, ':seen': { S: seen } },
  }
}

/** A counter that nobody has rung is not there. */
function wakesCheck(TableName: string, pipeline: string, wakes: number) {
  return {
    TableName,
    Key: wakesKey(pipeline),
    ConditionExpression: wakes === 0 ? 'attribute_not_exists(pk) OR wakes = :wakes' : 'wakes = :wakes',
    ExpressionAttributeValues: { ':wakes': { N: `${wakes}` } },
  }
}
