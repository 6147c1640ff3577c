/**
 * The DynamoDB client, loaded and made when the first call needs it, and where the ledger's items lie.
 *
 * Keys are `pk` and `sk`, both strings. A head has a partition of its own, as have the wake counter and the history
 * of each pipeline: rings never wait for commits. One small partition lists the pipelines. Version 1.
 */
import { type AwsOptions, clientConfig, type Deed, loadClient } from '../shared/aws.ts'
import { meterCalls } from '../shared/meter.ts'

type Sdk = typeof import('@aws-sdk/client-dynamodb')

/** Where a ledger lies. */
export interface DynamoLedgerOptions extends AwsOptions {
  /** Its keys: `pk` (hash) and `sk` (range), both strings. */
  readonly table: string
}

/** A table that is open. */
export interface Table {
  readonly sdk: Sdk
  readonly client: InstanceType<Sdk['DynamoDBClient']>
  readonly name: string
}

/** Opens the table on first use and keeps it. */
export function lazyTable(options: DynamoLedgerOptions): { open(): Promise<Table>; close(): Promise<void> } {
  let opened: Promise<Table> | null = null
  const open = async (): Promise<Table> => {
    const sdk = await loadClient('@aws-sdk/client-dynamodb', () => import('@aws-sdk/client-dynamodb'))
    // Answers take tens of milliseconds; a lease does not wait for a socket that is dead.
    const timeoutMs = 5_000
    const client = new sdk.DynamoDBClient(clientConfig({ timeoutMs, ...options }))
    meterCalls(client, 'dynamodb', options.meter)
    return { sdk, client, name: options.table }
  }
  return {
    open() {
      opened ??= open()
      return opened
    },
    async close() {
      const table = await opened?.catch(() => null)
      table?.client.destroy()
      opened = null
    },
  }
}

/** A deed on the table. */
export function deedOn({ name }: Table, text: string, writes: boolean): Deed {
  return { text: `${text} in table ${name}`, writes, unavailable: 'LEDGER_UNAVAILABLE' }
}

/** Attribute values as the service writes them. */
export type Key = { readonly pk: { readonly S: string }; readonly sk: { readonly S: string } }

const key = (pk: string, sk: string): Key => ({ pk: { S: pk }, sk: { S: sk } })

/** Digits of the largest safe integer: epochs sort as text in the order of numbers. */
const epochDigits = 16

/** Partition in which every pipeline has an item, with its id as sort key. */
export const pipelinesPartition = 'PIPELINES'

/** Of the head. */
export const headKey = (pipeline: string): Key => key(`PIPELINE#${pipeline}`, 'HEAD')
/** Of the wake counter. */
export const wakesKey = (pipeline: string): Key => key(`PIPELINE#${pipeline}#WAKES`, 'WAKES')
/** Of the item that lists a pipeline. */
export const listedKey = (pipeline: string): Key => key(pipelinesPartition, pipeline)
/** Partition of a pipeline's history. */
export const historyPartition = (pipeline: string): string => `PIPELINE#${pipeline}#HISTORY`
/** Sort key of an epoch in it. */
export const epochKey = (epoch: number): string => epoch.toString().padStart(epochDigits, '0')
/** Of a committed epoch. */
export const historyKey = (pipeline: string, epoch: number): Key => key(historyPartition(pipeline), epochKey(epoch))
