import { expect } from 'vitest'
import type { DynamoMode } from '../../lib/adapters/dynamodb/sink-form.ts'
import type { RejectPolicy } from '../../lib/ports/sink.ts'
import { type Contract, contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkFaultContract, sinkRefusalFaultContract } from '../../lib/testing/contracts/sink-faults.ts'
import { sinkRefusalContract } from '../../lib/testing/contracts/sink-refusals.ts'
import { sinkSizeContractOf } from '../../lib/testing/contracts/sink-size.ts'
import type { SinkSubject } from '../../lib/testing/contracts/sink-subject.ts'
import { type Emulator, awsTest as test } from '../support/aws.ts'
import { freshDynamo } from '../support/dynamodb-contract.ts'
import { dynamoSize } from '../support/sink-sizes-servers.ts'

const rows200k = 'takes 200,000 rows through flushes in bounded memory'
const rows1800 = 'keeps the rows of a key in order, task after task, epoch after epoch'

const differences: Readonly<Record<DynamoMode, Readonly<Record<string, string>>>> = {
  upsert: { [rows200k]: 'a lane takes 50,000 rows an epoch, so that its promotion ends in minutes' },
  transactions: {
    [rows200k]: 'a transaction takes 99 rows beside the marker',
    [rows1800]: 'a transaction takes 99 rows beside the marker',
  },
}

for (const mode of ['upsert', 'transactions'] as const) {
  let emulator: Emulator
  const check = (contract: Contract<SinkSubject>, onReject: RejectPolicy = 'park') => {
    const fresh = () => freshDynamo(emulator, mode, onReject)
    const implementation = { name: `DynamoDB, ${mode}`, fresh, ...(contract === sinkContract ? own : {}) }
    const how = onReject === 'park' ? mode : `${mode}, with dead letters`
    for (const { name, run } of contractCases(contract, implementation)) {
      test(`a DynamoDB sink, ${how}: ${name}`, async ({ emulator: shared }) => {
        emulator = shared
        await expect(run()).resolves.toBeUndefined()
      })
    }
  }
  const own = { differences: differences[mode] }
  check(sinkContract)
  check(sinkFaultContract)
  check(sinkRefusalFaultContract, 'dead-letter')
  check(sinkRefusalContract, 'dead-letter')
}

test('a DynamoDB sink takes the bytes of its limits in bounded memory', async ({ emulator }) => {
  for (const { run } of contractCases(
    sinkSizeContractOf({ rows: 50_000, rowBytes: 200_000 }),
    dynamoSize(emulator, 'upsert'),
  )) {
    await expect(run()).resolves.toBeUndefined()
  }
})
