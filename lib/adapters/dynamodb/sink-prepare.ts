/**
 * Making the table of markers, for a person who asks for it.
 *
 * Apart from the sink because a run never does this: its roles may not make tables.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { PawlError } from '../../model/errors.ts'
import { answerOf, tryAgain } from '../shared/aws.ts'
import type { Table } from './client.ts'

const looksMax = 120
const lookMs = 500

/** Makes the table unless it is there, and answers with the request; without a table of markers nothing is needed. */
export async function prepareMarkers(
  open: () => Promise<Table>,
  markerTable: string | null,
  dryRun: boolean,
): Promise<readonly string[]> {
  if (markerTable === null) return []
  const request = {
    TableName: markerTable,
    BillingMode: 'PAY_PER_REQUEST' as const,
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' as const }],
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' as const }],
  }
  if (!dryRun) await createTable(await open(), request)
  return [`dynamodb:CreateTable ${JSON.stringify(request)}`]
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
