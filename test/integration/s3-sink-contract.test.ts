import { expect } from 'vitest'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkFaultContract } from '../../lib/testing/contracts/sink-faults.ts'
import { sinkSizeContractOf } from '../../lib/testing/contracts/sink-size.ts'
import { type Emulator, awsTest as test } from '../support/aws.ts'
import { throughProxy } from '../support/fault-proxy.ts'
import { freshFiles } from '../support/s3-contract.ts'
import { largeRows } from '../support/sink-sizes.ts'
import { filesSize } from '../support/sink-sizes-servers.ts'

/** What the format of the files has a part in; the rest of the contract is about names and markers. */
const ofFormat = /tombstone|with key, value and timestamp|does not encode|in order, task after task|200,000|damaged/

for (const format of ['json-lines', 'csv', 'parquet'] as const) {
  let emulator: Emulator
  const implementation = { name: `S3, ${format}`, fresh: () => freshFiles(emulator, format) }
  const disturbed = {
    name: implementation.name,
    fresh: () => throughProxy(emulator.client, (through, more) => freshFiles(emulator, format, through, more)),
  }
  const cases = [...contractCases(sinkContract, implementation), ...contractCases(sinkFaultContract, disturbed)]
  for (const { name, run } of format === 'json-lines' ? cases : cases.filter((one) => ofFormat.test(one.name))) {
    test(`an S3 sink, ${format}: ${name}`, async ({ emulator: shared }) => {
      emulator = shared
      await expect(run()).resolves.toBeUndefined()
    })
  }
}

test('an S3 sink takes 100 MB in bounded memory', async ({ emulator }) => {
  for (const { run } of contractCases(sinkSizeContractOf(largeRows), filesSize(emulator, 'json-lines'))) {
    await expect(run()).resolves.toBeUndefined()
  }
})
