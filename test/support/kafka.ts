/**
 * vitest's `test` with a Kafka broker.
 *
 * All integration tests of a run share the `broker`, started when the first of them needs it. Without Java or Maven
 * a test that asks for it is skipped with a reason (which fails under CI, see the reporter).
 */
import { test } from 'vitest'
import { type Broker, missingTool, sharedBroker } from './kafka-broker.ts'

export {
  type Broker,
  type BrokerOptions,
  brokerClassPath,
  missingTool,
  sharedBroker,
  startBroker,
} from './kafka-broker.ts'

/** vitest's `test` with the shared broker. */
export const kafkaTest = test.extend<{ broker: Broker }>({
  broker: async ({ skip }, use) => {
    const missing = process.env.KAFKA_BROKERS ? null : missingTool()
    if (missing !== null) skip(missing)
    await use(await sharedBroker())
  },
})
