/**
 * The epoch machine on one machine: the deployed States Language document, interpreted in process.
 *
 * `aws-local-stepfunctions` walks the states; each Task state calls a local handler. Wait states pause by the clock
 * port for exactly `waitMs` (States Language knows whole seconds only), and retry pauses are short, since there is
 * no service to spare. A handler's error reaches Retry and Catch under its `name`, as on AWS.
 */
import { registerHooks } from 'node:module'
import type { Clock } from '../../ports/system.ts'

/** One loaded document, ready to be walked any number of times. */
export interface Interpreter {
  /** Walks the machine from its start to its end; resolves with the output of the last state. */
  run(input: unknown): Promise<unknown>
}

/** The document and what its states call. */
export interface InterpreterOptions {
  readonly definition: unknown
  /** By Task state name. */
  readonly steps: Readonly<Record<string, (input: never) => Promise<unknown>>>
  readonly clock: Clock
  /** Pause before a step is tried again. */
  readonly retryPauseMs: number
}

type Json = never

/** Loads the interpreter; the document is validated by the project's tests, not at each start. */
export async function interpreter(options: InterpreterOptions): Promise<Interpreter> {
  const { StateMachine } = await loaded()
  const machine = new StateMachine(options.definition as never, { validationOptions: { noValidate: true } })
  const retryIntervalOverrides = Object.fromEntries(
    Object.keys(options.steps).map((name) => [name, options.retryPauseMs]),
  )
  const overrides = {
    taskResourceLocalHandlers: withWaits(options),
    waitTimeOverrides: { Wait: 0 },
    retryIntervalOverrides,
  }
  return {
    run(input) {
      const execution = machine.run(input as Json, { overrides: overrides as never })
      return execution.result
    },
  }
}

/** What the interpreter imports and is never asked for here: to validate a document, to call functions of Lambda. */
const unused = ['asl-validator', '@aws-sdk/client-lambda', '@aws-sdk/credential-providers']
const instead = `data:text/javascript,${encodeURIComponent(
  `const refuse = () => { throw new Error('not loaded') }
export default refuse
export { refuse as fromCognitoIdentityPool }
export class LambdaClient { send() { refuse() } }
export class InvokeCommand {}`,
)}`

/** Loads the package alone: what it would bring along takes longer to load than everything else together. */
async function loaded(): Promise<typeof import('aws-local-stepfunctions')> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      unused.includes(specifier) && context.parentURL?.includes('/aws-local-stepfunctions/')
        ? { url: instead, format: 'module', shortCircuit: true }
        : next(specifier, context),
  })
  try {
    return await import('aws-local-stepfunctions')
  } finally {
    hooks.deregister()
  }
}

/** `Plan` follows a Wait state with its `waitMs` still in the input: the pause is taken there. */
function withWaits({ steps, clock }: InterpreterOptions): Record<string, (input: Json) => Promise<unknown>> {
  const wrapped: Record<string, (input: Json) => Promise<unknown>> = { ...steps }
  const plan = steps.Plan
  if (plan) {
    wrapped.Plan = async (input: Json) => {
      const { next, waitMs } = input as { next?: string; waitMs?: number }
      if (next === 'wait' && waitMs !== undefined && waitMs > 0) await clock.sleep(waitMs)
      return plan(input)
    }
  }
  return wrapped
}
