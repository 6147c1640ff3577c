import { describe } from 'vitest'
import { dynamoLedger } from '../../lib/adapters/dynamodb/ledger.ts'
import type { Ledger } from '../../lib/ports/ledger.ts'
import { contractCases, type Implementation } from '../../lib/testing/contracts/contract.ts'
import { ledgerContract } from '../../lib/testing/contracts/ledger.ts'
import { awsTest, sharedEmulator } from '../support/aws.ts'
import { freshTable } from '../support/aws-places.ts'

const dynamodb: Implementation<Ledger> = {
  name: 'DynamoDB',
  async fresh() {
    const emulator = await sharedEmulator()
    const table = await freshTable(emulator)
    const opened: Ledger[] = []
    return {
      async open() {
        const ledger = dynamoLedger({ ...emulator.client, table })
        opened.push(ledger)
        return ledger
      },
      async dispose() {
        for (const ledger of opened) await ledger.close()
      },
    }
  },
}

describe('case 69: DynamoDB keeps the contract of memory and SQLite', () => {
  for (const { name, run } of contractCases(ledgerContract, dynamodb)) awsTest(name, async ({ emulator: _ }) => run())
})
