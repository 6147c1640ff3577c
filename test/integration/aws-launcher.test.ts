import {
  CreateActivityCommand,
  CreateStateMachineCommand,
  DescribeExecutionCommand,
  SFNClient,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn'
import { describe, expect } from 'vitest'
import { executionArn, stepFunctionsLauncher } from '../../lib/adapters/stepfunctions/launcher.ts'
import type { RunKey } from '../../lib/model/steps.ts'
import { awsTest } from '../support/aws.ts'
import { type FaultProxy, faultProxy, type ProxiedCall, type ProxyFault } from '../support/fault-proxy.ts'

type Launcher = ReturnType<typeof stepFunctionsLauncher>

const test = awsTest.extend<{
  world: { proxy: FaultProxy; launcher: Launcher; machine: string; client: SFNClient; pipeline: string }
}>({
  world: async ({ emulator, task }, use) => {
    const proxy = await faultProxy(emulator.endpoint)
    const client = new SFNClient(emulator.client)
    const pipeline = `p-${task.id.replaceAll(/[^a-z0-9]/gi, '')}`.slice(0, 50)
    const { activityArn } = await client.send(new CreateActivityCommand({ name: pipeline }))
    const { stateMachineArn: machine } = await client.send(
      new CreateStateMachineCommand({
        name: pipeline,
        roleArn: 'arn:aws:iam::000000000000:role/machine',
        // An execution that stays: waits take no time in the emulator, an activity that nobody works on does.
        definition: JSON.stringify({
          StartAt: 'Choose',
          States: {
            Choose: {
              Type: 'Choice',
              Choices: [{ Variable: '$.run.sequence', NumericEquals: 1, Next: 'Stay' }],
              Default: 'Over',
            },
            Stay: { Type: 'Task', Resource: activityArn, End: true },
            Over: { Type: 'Succeed' },
          },
        }),
      }),
    )
    const launcher = stepFunctionsLauncher({
      ...emulator.client,
      endpoint: proxy.endpoint,
      stateMachineArn: machine!,
      lingerMs: 5,
    })
    await use({ proxy, launcher, machine: machine!, client, pipeline })
    await launcher.close()
    await proxy.close()
    client.destroy()
  },
})

const starts = ({ operation }: ProxiedCall) => operation === 'StartExecution'
const code = (name: string) => expect.objectContaining({ code: name })
const answered = (name: string, status = 400): ProxyFault => ({ fault: 'answered', status, code: name })

describe('starting', () => {
  test('starts a run with its key, under a name of sequence and wakes', async ({ world }) => {
    const { launcher, machine, client, pipeline } = world
    expect(await launcher.start({ pipeline, sequence: 2, wakes: 17 })).toBe('started')
    const executionOf = executionArn(machine, `${pipeline}-2-17`)
    const { input } = await client.send(new DescribeExecutionCommand({ executionArn: executionOf }))
    const { run } = JSON.parse(input!) as { run: RunKey }
    expect(run).toMatchObject({ pipeline, sequence: 2, place: executionOf, lingerMs: 5, resume: false })
    expect(run.id).toMatch(/^[0-9a-f]{32}$/)
    expect(Math.abs(Date.now() - run.startedAtMs)).toBeLessThan(60_000)
  })

  test('never uses a name twice, whether its run goes on or is over', async ({ world }) => {
    const { launcher, pipeline } = world
    for (const sequence of [1, 2]) {
      expect(await launcher.start({ pipeline, sequence, wakes: 1 })).toBe('started')
      expect(await launcher.start({ pipeline, sequence, wakes: 1 })).toBe('exists')
    }
    expect(await launcher.start({ pipeline, sequence: 2, wakes: 2 })).toBe('started')
  })

  test('lets one of many starts of a name win', async ({ world }) => {
    const { launcher, pipeline } = world
    const all = Array.from({ length: 6 }, () => launcher.start({ pipeline, sequence: 2, wakes: 1 }))
    expect((await Promise.all(all)).toSorted()).toEqual([...Array(5).fill('exists'), 'started'])
  })

  test('is repeated after a lost answer, a throttle or a full account', async ({ world }) => {
    const { proxy, launcher, pipeline } = world
    proxy.plan(starts, { fault: 'answer-lost' })
    expect(['started', 'exists']).toContain(await launcher.start({ pipeline, sequence: 1, wakes: 1 }))
    proxy.plan(starts, answered('ThrottlingException'))
    proxy.plan(starts, answered('ExecutionLimitExceeded'))
    proxy.plan(starts, answered('InternalServerError', 500))
    expect(await launcher.start({ pipeline, sequence: 2, wakes: 1 })).toBe('started')
    expect(proxy.left).toBe(0)
  })

  test('says what stands in its way', async ({ world }) => {
    const { proxy, launcher, pipeline } = world
    const run = { pipeline, sequence: 2, wakes: 1 }
    proxy.plan(starts, answered('StateMachineDoesNotExist'))
    await expect(launcher.start(run)).rejects.toEqual(code('AWS_RESOURCE_MISSING'))
    proxy.plan(starts, answered('AccessDeniedException'))
    await expect(launcher.start(run)).rejects.toEqual(code('AWS_ACCESS_DENIED'))
    proxy.plan(starts, answered('ThrottlingException'), 8)
    await expect(launcher.start(run)).rejects.toEqual(code('LAUNCHER_UNAVAILABLE'))
    proxy.plan(starts, { fault: 'request-lost' }, 8)
    await expect(launcher.start(run)).rejects.toEqual(code('UNKNOWN_RESULT'))
  })
})

describe('looking', () => {
  test('tells runs that go on, ended or were stopped, and knows no others', async ({ world }) => {
    const { launcher, machine, client, pipeline } = world
    const stays = executionArn(machine, `${pipeline}-1-1`)
    expect(await launcher.status(stays)).toBe('unknown')
    await launcher.start({ pipeline, sequence: 1, wakes: 1 })
    await launcher.start({ pipeline, sequence: 2, wakes: 1 })
    expect(await launcher.status(stays)).toBe('running')
    await expect.poll(() => launcher.status(executionArn(machine, `${pipeline}-2-1`))).toBe('gone')
    await client.send(new StopExecutionCommand({ executionArn: stays }))
    expect(await launcher.status(stays)).toBe('gone')
    expect(await launcher.status('linux:host:machine:boot:1:2:3')).toBe('unknown')
  })
})

describe('stopping', () => {
  test('ends a run that goes on; one that has ended is stopped, and no other is known', async ({ world }) => {
    const { launcher, machine, pipeline } = world
    const [stays, over] = [1, 2].map((sequence) => executionArn(machine, `${pipeline}-${sequence}-1`))
    expect(await launcher.stop!(stays!, 'a test')).toBe(false)
    for (const sequence of [1, 2]) await launcher.start({ pipeline, sequence, wakes: 1 })
    expect(await launcher.stop!(stays!, 'a test')).toBe(true)
    await expect.poll(() => launcher.status(over!)).toBe('gone')
    for (const ended of [stays!, over!]) expect(await launcher.stop!(ended, 'a test')).toBe(true)
    expect(await launcher.stop!('linux:host:machine:boot:1:2:3', 'a test')).toBe(false)
  })
})
