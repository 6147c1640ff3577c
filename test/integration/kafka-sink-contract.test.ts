import { expect } from 'vitest'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { type Broker, kafkaTest as test } from '../support/kafka.ts'
import { freshKafka } from '../support/kafka-contract.ts'

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
