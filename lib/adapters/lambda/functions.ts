/**
 * What Lambda tells of functions, and how a command calls one: for a doctor, and whoever sends for it.
 */
import { PawlError } from '../../model/errors.ts'
import type { MappingState, Surroundings } from '../../ports/surroundings.ts'
import { type AwsOptions, clientConfig, type Deed, loadClient, tryAgain } from '../shared/aws.ts'

/** A doctor looks at brokers that may not answer. */
const invokeTimeoutMs = 120_000

const open = async (options: AwsOptions) => {
  const sdk = await loadClient('@aws-sdk/client-lambda', () => import('@aws-sdk/client-lambda'))
  return { sdk, client: new sdk.LambdaClient(clientConfig(options)) }
}
const deedOf = (text: string): Deed => ({ text, writes: false, unavailable: 'LAUNCHER_UNAVAILABLE' })

/** Mappings that ring a function. Throws `LAUNCHER_UNAVAILABLE`, `AWS_ACCESS_DENIED`, `PACKAGE_MISSING`. */
export async function mappingsOf(functionName: string, options: AwsOptions = {}): Promise<MappingState[]> {
  const { sdk, client } = await open(options)
  try {
    const { EventSourceMappings = [] } = await tryAgain(deedOf(`list the mappings of ${functionName}`), () =>
      client.send(new sdk.ListEventSourceMappingsCommand({ FunctionName: functionName })),
    )
    return EventSourceMappings.map(({ Topics = [], State = 'unknown', LastProcessingResult = null }) => {
      return { topics: Topics, state: State, result: LastProcessingResult }
    })
  } finally {
    client.destroy()
  }
}

/** The account's concurrency. Throws as `mappingsOf`. */
export async function concurrencyOf(options: AwsOptions = {}): ReturnType<Surroundings['concurrency']> {
  const { sdk, client } = await open(options)
  try {
    const { AccountLimit = {} } = await tryAgain(deedOf('read the quota of Lambda'), () =>
      client.send(new sdk.GetAccountSettingsCommand({})),
    )
    const account = AccountLimit.ConcurrentExecutions ?? 0
    return { account, unreserved: AccountLimit.UnreservedConcurrentExecutions ?? account }
  } finally {
    client.destroy()
  }
}

/** Calls a function and gives its answer. Throws `FUNCTION_FAILED` with what it threw, and as `mappingsOf`. */
export async function invokeFunction(name: string, event: unknown, options: AwsOptions = {}): Promise<unknown> {
  const { sdk, client } = await open({ timeoutMs: invokeTimeoutMs, ...options })
  try {
    const { FunctionError, Payload } = await tryAgain(deedOf(`call ${name}`), () =>
      client.send(new sdk.InvokeCommand({ FunctionName: name, Payload: JSON.stringify(event) })),
    )
    const text = Payload?.transformToString() || 'null'
    if (FunctionError === undefined) return JSON.parse(text)
    throw new PawlError('FUNCTION_FAILED', `${name}: ${text.slice(0, 1000)}`, { function: name })
  } finally {
    client.destroy()
  }
}
