/**
 * Making the tables of markers and of refused rows, for a person who asks for it.
 *
 * Apart from the sink because a run never does this: its roles may not make tables.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { PawlError } from '../../model/errors.ts'
import { answerOf, tryAgain } from '../shared/aws.ts'
import type { Table } from './client.ts'

const looksMax = 120
const lookMs = 500

/** The tables of a sink beside that of its rows; null where it needs none. */
export interface OwnTables {
  readonly markerTable: string | null
  readonly refusedTable: string | null
}

/** Makes the tables unless they are there, and answers with the requests. */
export async function prepareTables(
  open: () => Promise<Table>,
  { markerTable, refusedTable }: OwnTables,
  dryRun: boolean,
): Promise<readonly string[]> {
  const requests = [
    ...(markerTable === null ? [] : [requestOf(markerTable, ['pk'])]),
    ...(refusedTable === null ? [] : [requestOf(refusedTable, ['pk', 'sk'])]),
  ]
  if (!dryRun) for (const request of requests) await createTable(await open(), request)
  return requests.map((request) => `dynamodb:CreateTable ${JSON.stringify(request)}`)
}

function requestOf(TableName: string, keys: readonly string[]) {
  return {
    TableName,
    BillingMode: 'PAY_PER_REQUEST' as const,
    AttributeDefinitions: keys.map((AttributeName) => ({ AttributeName, AttributeType: 'S' as const })),
    KeySchema: keys.map((AttributeName, index) => ({
      AttributeName,
      KeyType: index === 0 ? ('HASH' as const) : ('RANGE' as const),
    })),
  }
}

type Request = ConstructorParameters<Table['sdk']['CreateTableCommand']>[0] & { readonly TableName: string }

async function createTable({ sdk, client }: Table, request: Request): Promise<void> {
  const { TableName } = request
  const deed = { text: `make table ${TableName}`, writes: false, unavailable: 'SINK_UNAVAILABLE' as const }
  await tryAgain(deed, async () => {
    try {
      await client.send(new sdk.CreateTableCommand(request))
    } catch (error) {
      if (answerOf(error).name !== 'ResourceInUseException') throw error
    }
  })
  for (let looks = 0; looks < looksMax; looks++) {
    const { Table: made } = await tryAgain(deed, () => client.send(new sdk.DescribeTableCommand({ TableName })))
    if (made?.TableStatus === 'ACTIVE') return
    await pause(lookMs)
  }
  throw new PawlError('SINK_UNAVAILABLE', `table ${TableName} is still being made`)
}
