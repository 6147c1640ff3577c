/**
 * The poller: what AWS runs behind an event source mapping of Kafka, as a program.
 *
 * Asks Lambda for its mappings, reads the topics of each one that is enabled, and invokes its function. Emulators of
 * AWS do not poll Kafka; this does, for any of them, and knows nothing of any of them. Endpoint, region and
 * credentials come from the environment, as for every program of AWS. A self-managed cluster is shown to the function
 * as one of MSK, since that is what it stands for.
 *
 *     AWS_ENDPOINT_URL=http://127.0.0.1:4566 node scripts/aws/poller.ts
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type EventSourceMappingConfiguration,
  InvokeCommand,
  LambdaClient,
  ListEventSourceMappingsCommand,
} from '@aws-sdk/client-lambda'
import { type Invoke, type Mapping, type Polling, pollMapping } from './event-source.ts'

const standInArn = 'arn:aws:kafka:us-east-1:000000000000:cluster/local/00000000-0000-0000-0000-000000000000-1'
const lookEveryMs = 2_000

/** The mapping as a poller needs it; null for one that reads no Kafka or is disabled. */
export function mappingOf(configuration: EventSourceMappingConfiguration): Mapping | null {
  const { Topics = [], State, EventSourceArn, SelfManagedEventSource, UUID = '' } = configuration
  const servers = SelfManagedEventSource?.Endpoints?.KAFKA_BOOTSTRAP_SERVERS ?? []
  if (Topics.length === 0 || servers.length === 0 || State === 'Disabled' || State === 'Deleting') return null
  return {
    bootstrapServers: servers.join(','),
    topics: Topics,
    group:
      configuration.SelfManagedKafkaEventSourceConfig?.ConsumerGroupId ??
      configuration.AmazonManagedKafkaEventSourceConfig?.ConsumerGroupId ??
      UUID,
    startingPosition: configuration.StartingPosition === 'TRIM_HORIZON' ? 'TRIM_HORIZON' : 'LATEST',
    batchSize: configuration.BatchSize ?? 100,
    batchWindowMs: 1_000 * (configuration.MaximumBatchingWindowInSeconds ?? 0.5),
    eventSourceArn: EventSourceArn || standInArn,
  }
}

/** Calls the function and waits for its answer. Rejects with what the function threw. */
export function invokeFunction(client: LambdaClient, name: string): Invoke {
  return async (event) => {
    const answer = await client.send(new InvokeCommand({ FunctionName: name, Payload: JSON.stringify(event) }))
    if (answer.FunctionError === undefined) return
    const { errorMessage = answer.FunctionError } = JSON.parse(answer.Payload?.transformToString() || '{}')
    throw new Error(errorMessage)
  }
}

if (import.meta.main) await main()

async function main(): Promise<void> {
  process.removeAllListeners('warning')
  const client = new LambdaClient({ maxAttempts: 1 })
  const polled = new Map<string, Polling>()
  let told = ''
  for (;;) {
    try {
      await followMappings(client, polled)
      told = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== told) say(`Lambda does not say which mappings there are: ${message}`)
      told = message
    }
    await sleep(lookEveryMs)
  }
}

/** Begins to read for new mappings, and leaves those that are gone. */
async function followMappings(client: LambdaClient, polled: Map<string, Polling>): Promise<void> {
  const { EventSourceMappings = [] } = await client.send(new ListEventSourceMappingsCommand({}))
  const seen = new Set<string>()
  for (const configuration of EventSourceMappings) {
    const mapping = mappingOf(configuration)
    if (mapping === null) continue
    const name = configuration.FunctionArn?.split(':')[6] ?? ''
    const id = JSON.stringify([configuration.UUID, mapping])
    seen.add(id)
    if (polled.has(id)) continue
    say(`reads ${mapping.topics.join(', ')} for ${name}, from ${mapping.startingPosition}`)
    polled.set(id, pollMapping(mapping, told(name, invokeFunction(client, name)), say))
  }
  for (const [id, polling] of polled) {
    if (seen.has(id)) continue
    polled.delete(id)
    await polling.stop()
  }
}

function told(name: string, invoke: Invoke): Invoke {
  return async (event) => {
    await invoke(event)
    const batches = Object.values(event.records)
    const records = batches.reduce((sum, { length }) => sum + length, 0)
    say(`rang ${name} with ${records} records of ${batches.length} partitions`)
  }
}

function say(line: string): void {
  console.log(`${new Date().toISOString().slice(11, 19)}  ${line}`)
}
