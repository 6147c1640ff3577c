import { expect } from 'vitest'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkSizeContractOf } from '../../lib/testing/contracts/sink-size.ts'
import { type Broker, kafkaTest as test } from '../support/kafka.ts'
import { freshKafka } from '../support/kafka-contract.ts'
import { largeRows } from '../support/sink-sizes.ts'
import { kafkaSize } from '../support/sink-sizes-servers.ts'

let broker: Broker

const implementation = {
  name: 'Kafka',
  fresh: () => freshKafka(broker),
  differences: {
    'has one effect when several promote at once':
      'promoters fence one another, so that some are told TRANSACTION_FENCED in place of the marker',
  },
}

for (const { name, run } of contractCases(sinkContract, implementation)) {
  test(`a Kafka sink: ${name}`, async ({ broker: shared }) => {
    broker = shared
    await expect(run()).resolves.toBeUndefined()
  })
}

test('a Kafka sink takes 100 MB in bounded memory', async ({ broker: shared }) => {
  for (const { run } of contractCases(sinkSizeContractOf(largeRows), kafkaSize(shared))) {
    await expect(run()).resolves.toBeUndefined()
  }
})
