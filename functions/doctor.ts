/**
 * The doctor as a function: looks from where the steps run, and answers with its findings; see
 * `lib/epoch/diagnose.ts`. Called by `pawl doctor --stack`, which names what the stack printed.
 */

import { kafka } from '../lib/adapters/kafka/cluster.ts'
import { concurrencyOf, mappingsOf } from '../lib/adapters/lambda/functions.ts'
import { secretCredentials } from '../lib/adapters/secretsmanager/credentials.ts'
import { serverTime } from '../lib/adapters/shared/server-time.ts'
import { definitionOf } from '../lib/adapters/stepfunctions/definition.ts'
import { diagnose } from '../lib/epoch/diagnose.ts'
import type { Surroundings } from '../lib/ports/surroundings.ts'
import { kafkaOptionsOf } from './brokers.ts'
import { environmentOf } from './environment.ts'
import { onJob } from './runtime.ts'

/** What the command sends along. */
interface Call {
  readonly stateMachineArn: string
  readonly trigger: string
}

/** What Lambda calls. */
export const run = onJob(async (job, { stateMachineArn, trigger }: Call) => {
  const environment = environmentOf(process.env)
  const { kafka: brokers, PAWL_STAGE: stage } = environment
  const { AWS_ENDPOINT_URL: endpoint, AWS_REGION: region } = process.env
  const { authentication } = brokers
  const surroundings: Surroundings = {
    serverTimes: () =>
      Promise.all(
        ['dynamodb', 's3'].map((server) =>
          serverTime(server, endpoint ?? `https://${server}.${region}.amazonaws.com/`),
        ),
      ),
    workflow: environment.PAWL_WORKFLOW ?? 'standard',
    definition: () => definitionOf(stateMachineArn),
    mappings: async () => {
      const found = await mappingsOf(trigger)
      return found.length === 0 ? null : found
    },
    concurrency: concurrencyOf,
    readSecret: authentication.type === 'sasl' ? secretCredentials(authentication.secretArn) : null,
  }
  return diagnose({ job, cluster: kafka(kafkaOptionsOf(brokers, secretCredentials)), stage, surroundings })
})
