/**
 * Counts the calls that clients of AWS make, and what each of them consumed.
 *
 * Sits in the SDK's own middleware: since clients never repeat a call by themselves, what passes here once is one
 * request on the bill. DynamoDB is asked to report the units of each call, which costs nothing. A write that a
 * condition refuses consumes a unit or more that no answer reports: it counts as one.
 */
import { noUsage } from '../../model/usage.ts'
import { answerOf, type CallMeter, type CallOutcome, type Metered } from './aws.ts'

export type { CallMeter } from './aws.ts'

/** A meter that starts at nothing. */
export function callMeter(): CallMeter {
  let calls: Record<string, number> = {}
  let [readUnits, writeUnits, throttles] = [0, 0, 0]
  return {
    count(of, operation, outcome) {
      const call = `${of}:${operation}`
      calls[call] = (calls[call] ?? 0) + 1
      if ('error' in outcome && isThrottle(outcome.error)) throttles++
      if (of !== 'dynamodb') return
      const units = unitsOf(outcome)
      if (/^(Get|Query|Scan|BatchGet|TransactGet)/.test(operation)) readUnits += units
      else writeUnits += units
    },
    take() {
      if (Object.keys(calls).length === 0) return noUsage
      const taken = { calls, readUnits, writeUnits, throttles }
      calls = {}
      readUnits = writeUnits = throttles = 0
      return taken
    },
  }
}

interface Capacity {
  readonly CapacityUnits?: number
}

function unitsOf(outcome: CallOutcome): number {
  if ('error' in outcome) return isRefusal(outcome.error) ? 1 : 0
  const { ConsumedCapacity = [] } = (outcome.answer ?? {}) as { ConsumedCapacity?: Capacity | readonly Capacity[] }
  return [ConsumedCapacity].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0)
}

function isRefusal(error: unknown): boolean {
  return ['ConditionalCheckFailedException', 'TransactionCanceledException'].includes(answerOf(error).name)
}

const throttleNames = new Set([
  'BandwidthLimitExceeded',
  'ExecutionLimitExceeded',
  'LimitExceededException',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'RequestThrottled',
  'RequestThrottledException',
  'SlowDown',
  'Throttling',
  'ThrottlingError',
  'ThrottlingException',
  'TooManyRequestsException',
])
const throttleReasons = new Set(['ThrottlingError', 'ProvisionedThroughputExceeded'])

/** True when the service says that it was asked too often; a cancelled transaction says so in its reasons. */
export function isThrottle(error: unknown): boolean {
  const { name, status } = answerOf(error)
  if (throttleNames.has(name) || status === 429) return true
  const { CancellationReasons = [] } = (error ?? {}) as {
    readonly CancellationReasons?: readonly { readonly Code?: string }[]
  }
  return CancellationReasons.some(({ Code = '' }) => throttleReasons.has(Code))
}

/** A client of the SDK, as far as it is metered. */
interface MeteredClient {
  readonly middlewareStack: {
    add(middleware: never, options: { readonly step: 'initialize'; readonly name: string }): void
  }
}
type Next = (args: { readonly input: object }) => Promise<{ readonly output: unknown }>

/** Lets the meter see every call of the client; without one nothing changes. */
export function meterCalls(client: MeteredClient, of: Metered, meter: CallMeter | undefined): void {
  if (meter === undefined) return
  const middleware =
    (next: Next, { commandName = '' }: { readonly commandName?: string }) =>
    async (args: { readonly input: object }) => {
      const operation = commandName.replace(/Command$/, '')
      const input = of === 'dynamodb' ? { ...args.input, ReturnConsumedCapacity: 'TOTAL' } : args.input
      try {
        const answer = await next({ ...args, input })
        meter.count(of, operation, { answer: answer.output })
        return answer
      } catch (error) {
        meter.count(of, operation, { error })
        throw error
      }
    }
  client.middlewareStack.add(middleware as never, { step: 'initialize', name: 'meterCalls' })
}
