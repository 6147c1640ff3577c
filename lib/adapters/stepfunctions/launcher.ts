/**
 * Starts runs as executions of a state machine, and asks whether one is gone where that can be told.
 *
 * The name of an execution is never used twice, which Step Functions itself keeps for 90 days: that is what makes a
 * start safe to repeat. Every start has a random run id in its input, so that AWS's answer for a name that still runs
 * (200 when the input is the same) only ever meets a repeated try of one and the same start. `DescribeExecution` may
 * lag behind: a run that ended reads as running for a moment, which costs a wait and nothing else.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { RunKey } from '../../model/steps.ts'
import type { Launcher, RunStart } from '../../ports/system.ts'
import {
  type AwsOptions,
  answerOf,
  clientConfig,
  type Deed,
  loadClient,
  tryAgain,
  type Verdict,
  verdictOf,
} from '../shared/aws.ts'
import { meterCalls } from '../shared/meter.ts'

/** The machine of one pipeline. */
export interface StepFunctionsLauncherOptions extends AwsOptions {
  /** Of the Standard state machine; a version or an alias may follow its name. */
  readonly stateMachineArn: string
  /** Of an Express machine nothing is asked: it keeps no names, tells no status and stops no execution. */
  readonly workflow?: 'standard' | 'express'
  /** How long a run stays when there is nothing to do; 0 unless said otherwise, since waits cost transitions. */
  readonly lingerMs?: number
}

/** Longest execution name. */
const nameCharsMax = 80
const hashChars = 12

type Status = Awaited<ReturnType<Launcher['status']>>

/**
 * The launcher of a state machine. No call is made before it is used.
 *
 * Calls throw `LAUNCHER_UNAVAILABLE`, for a start whose outcome is open `UNKNOWN_RESULT`, and `AWS_ACCESS_DENIED`,
 * `AWS_RESOURCE_MISSING`, `PACKAGE_MISSING`.
 */
export function stepFunctionsLauncher(options: StepFunctionsLauncherOptions): Launcher & { close(): Promise<void> } {
  const { stateMachineArn, workflow = 'standard' } = options
  const open = async () => {
    const sdk = await loadClient('@aws-sdk/client-sfn', () => import('@aws-sdk/client-sfn'))
    const client = new sdk.SFNClient(clientConfig(options))
    meterCalls(client, 'states', options.meter)
    return { sdk, client }
  }
  let opened: ReturnType<typeof open> | null = null
  const connected = () => {
    opened ??= open()
    return opened
  }
  const status = async (place: string): Promise<Status> => {
    if (!isExecution(place)) return 'unknown'
    const { sdk, client } = await connected()
    return tryAgain(deedOn(`look at ${place}`, false), async () => {
      try {
        return statusOf((await client.send(new sdk.DescribeExecutionCommand({ executionArn: place }))).status)
      } catch (error) {
        if (['ExecutionDoesNotExist', 'InvalidArn'].includes(answerOf(error).name)) return 'unknown'
        throw error
      }
    })
  }
  return {
    blind: workflow === 'express',
    async start(run) {
      const { sdk, client } = await connected()
      const name = executionName(run)
      const input = JSON.stringify({
        run: runKey(run, executionArn(stateMachineArn, name, workflow), options.lingerMs ?? 0),
      })
      return tryAgain(deedOn(`start ${name}`, true), async () => {
        try {
          await client.send(new sdk.StartExecutionCommand({ stateMachineArn, name, input }))
          return 'started'
        } catch (error) {
          if (answerOf(error).name === 'ExecutionAlreadyExists') return 'exists'
          throw error
        }
      })
    },
    status,
    async stop(place, why) {
      if (!isExecution(place)) return false
      const { sdk, client } = await connected()
      // Repeating it changes nothing: an execution that has ended stays as it is.
      return tryAgain(deedOn(`stop ${place}`, false), async () => {
        try {
          await client.send(new sdk.StopExecutionCommand({ executionArn: place, error: 'Aborted', cause: why }))
          return true
        } catch (error) {
          if (['ExecutionDoesNotExist', 'InvalidArn'].includes(answerOf(error).name)) return false
          // Who ends by itself at that moment may be refused, and has stopped.
          if (verdictOf(error) === 'refused' && (await status(place)) === 'gone') return true
          throw error
        }
      })
    },
    async close() {
      const connection = await opened?.catch(() => null)
      connection?.client.destroy()
      opened = null
    },
  }
}

/** Too many at once is a throttle of its own; a machine that is being deleted is as good as gone. */
function judge(error: unknown): Verdict | null {
  const { name } = answerOf(error)
  if (name === 'ExecutionLimitExceeded') return 'undone'
  return name === 'StateMachineDeleting' ? 'missing' : null
}

function deedOn(text: string, writes: boolean): Deed {
  return { text, writes, unavailable: 'LAUNCHER_UNAVAILABLE', judge }
}

/**
 * The execution's name: pipeline, sequence and wake counter, at most 80 characters.
 *
 * A pipeline id that does not fit, or has characters that Step Functions does not take, is cut and gets a hash.
 */
export function executionName({ pipeline, sequence, wakes }: RunStart): string {
  const tail = `-${sequence}-${wakes}`
  const charsMax = nameCharsMax - tail.length
  const plain = pipeline.replaceAll(/[^A-Za-z0-9_.-]/g, '_')
  if (plain === pipeline && plain.length <= charsMax) return plain + tail
  const hash = createHash('sha256').update(pipeline).digest('hex').slice(0, hashChars)
  return `${plain.slice(0, charsMax - hashChars - 1)}-${hash}${tail}`
}

/**
 * `arn:aws:states:region:account:stateMachine:machine[:version]` → `…:execution:machine:name`, for Express
 * `…:express:machine:name`, behind which AWS puts an id of its own.
 */
export function executionArn(
  stateMachineArn: string,
  name: string,
  workflow: 'standard' | 'express' = 'standard',
): string {
  const [arn, partition, service, region, account, , machine] = stateMachineArn.split(':')
  return [
    arn,
    partition,
    service,
    region,
    account,
    workflow === 'express' ? workflow : 'execution',
    machine,
    name,
  ].join(':')
}

/** Runs of other places, on a person's machine say, are unknown here. */
function isExecution(place: string): boolean {
  const [arn, , service, , , kind] = place.split(':')
  return arn === 'arn' && service === 'states' && kind === 'execution'
}

function runKey({ pipeline, sequence, resume = false }: RunStart, place: string, lingerMs: number): RunKey {
  const id = randomBytes(16).toString('hex')
  return { pipeline, id, sequence, place, lingerMs, resume, startedAtMs: Date.now() }
}

/** An execution that waits to be redriven was ended, and may yet go on. */
function statusOf(status: string | undefined): Status {
  switch (status) {
    case 'RUNNING':
      return 'running'
    case 'SUCCEEDED':
    case 'FAILED':
    case 'TIMED_OUT':
    case 'ABORTED':
      return 'gone'
    default:
      return 'unknown'
  }
}
