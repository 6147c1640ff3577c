import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  DeleteFunctionConcurrencyCommand,
  InvokeCommand,
  LambdaClient,
  PutFunctionConcurrencyCommand,
} from '@aws-sdk/client-lambda'
import { SFNClient, StopExecutionCommand } from '@aws-sdk/client-sfn'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { metricCount } from '../../lib/adapters/cloudwatch/metrics.ts'
import { type Datapoint, datapointsOf, isAlarming } from '../support/alarm-state.ts'
import { missingEmulatorTool } from '../support/aws-emulator.ts'
import { bootstrap, type Deployed, deploy } from '../support/deployed.ts'
import { type DeployedWatch, watchStack } from '../support/deployed-logs.ts'
import { type Disturbed, startDisturbed } from '../support/disturbed.ts'
import { type Broker, missingTool, startBroker } from '../support/kafka-broker.ts'
import { asAdmin, send } from '../support/kafka-topics.ts'

const missing = missingTool() ?? missingEmulatorTool()
const entry = fileURLToPath(new URL('../support/deployed-watched.ts', import.meta.url))
const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }
const minuteMs = 60_000
const topics = ['watched-in', 'watched-out', 'watched-dead'].map((topic) => ({ topic, numPartitions: 1 }))

let disturbed: Disturbed
let broker: Broker
let deployed: Deployed
let watch: DeployedWatch
/** Everything that was measured, a minute for each part of a test. */
const points: Datapoint[] = []
const lines: string[] = []
let minute = 1

/** Does what is to be done within a minute of the alarms' clock; answers with the alarms that are on at its end. */
async function inMinute(deed: () => Promise<unknown>): Promise<string[]> {
  const atMs = minute++ * minuteMs
  const errors = await deed().then(
    () => 0,
    (error: Error) => {
      if (!error.message.startsWith(deployed.output('TriggerName'))) throw error
      return 1
    },
  )
  const fresh = await watch.newLines()
  lines.push(...fresh)
  points.push(...datapointsOf(fresh, atMs))
  // What Lambda itself counts of the trigger.
  const dimensions = { FunctionName: deployed.output('TriggerName') }
  points.push({ namespace: 'AWS/Lambda', name: 'Errors', dimensions, value: errors, atMs })
  return watch.alarms.filter(([, alarm]) => isAlarming(alarm, points, minute * minuteMs)).map(([name]) => name)
}

const ring = () => deployed.invoke('TriggerName', tick)
const sendLines = (...values: readonly string[]) =>
  send(
    broker,
    'watched-in',
    values.map((value) => ({ value })),
  )

async function catchUp(...values: readonly string[]): Promise<void> {
  if (values.length > 0) await sendLines(...values)
  await ring()
  await deployed.untilAtRest(60_000)
}

/** Later than anything that is looked at over five minutes. */
async function wellAgain(): Promise<void> {
  minute += 6
  for (let i = 0; i < 3; i++) await inMinute(ring)
  expect(await inMinute(ring)).toEqual([])
}

describe.skipIf(missing !== null)('the alarms of a deployment', () => {
  beforeAll(async () => {
    ;[disturbed, broker] = await Promise.all([startDisturbed(() => {}), startBroker()])
    await asAdmin(broker, (admin) => admin.createTopics({ topics, waitForLeaders: true }))
    const { emulator } = disturbed
    await bootstrap({ emulator, broker })
    deployed = await deploy({ emulator, broker, entry })
    watch = await watchStack(emulator.client, 'pawl-word-count-dev')
  }, 300_000)

  afterAll(async () => {
    await deployed?.close()
    await Promise.all([disturbed?.remove(), broker?.remove()])
  })

  afterEach(() => disturbed.proxy.forget())

  test('are silent while all is well; every line says where it belongs, and metrics are bounded', async () => {
    await inMinute(() => catchUp('a', 'b'))
    await inMinute(() => catchUp('c'))
    expect(await inMinute(() => catchUp('d'))).toEqual([])
    const all = lines.map((line) => JSON.parse(line)).filter((line) => line.pipeline === 'watched')
    expect(all.length).toBeGreaterThan(30)
    for (const line of all)
      for (const field of ['event', 'run', 'epoch', 'attempt', 'task']) expect(line).toHaveProperty(field)
    const ofEpoch = all.filter(({ epoch, event }) => epoch === 2 && event !== 'measure')
    expect(new Set(ofEpoch.map(({ attempt }) => attempt).filter(Boolean)).size).toBe(1)
    const steps = ofEpoch.filter(({ event }) => event === 'step').map(({ step }) => step)
    for (const step of ['plan', 'operate', 'precommit', 'commit', 'promote', 'finalize']) expect(steps).toContain(step)
    const sets = new Set(points.map(({ name, dimensions }) => `${name} ${JSON.stringify(dimensions)}`))
    const names = new Set(points.map(({ name }) => name))
    console.log(JSON.stringify({ lines: all.length, metrics: names.size, sets: sets.size }))
    expect(sets.size).toBeLessThanOrEqual(metricCount({ topic: 1, sink: 2, operator: 1 }) + 1)
    for (const name of names) if (name !== 'Errors') expect(watch.dashboard).toContain(name)
    // What an epoch used was counted, as a person would count it.
    const used = (name: string) =>
      ofEpoch.reduce((sum, line) => sum + ((line as Readonly<Record<string, number>>)[name] ?? 0), 0)
    // One task and one lane with rows; the manifest, the plan, rows, state and result; two heads and a history.
    console.log(JSON.stringify({ writes: used('StoreWrites'), reads: used('StoreReads'), units: used('WriteUnits') }))
    expect(used('Transitions')).toBe(10)
    expect(used('StoreWrites')).toBeGreaterThanOrEqual(5)
    expect(used('WriteUnits')).toBeGreaterThanOrEqual(4)
  })

  test('saved queries ask for fields that lines have', () => {
    const known = new Set(lines.flatMap((line) => Object.keys(JSON.parse(line))))
    for (const { text } of watch.queries) {
      const fields = text.replaceAll(/"[^"]*"|\/[^/]*\//g, '').match(/(?<![\w@])[A-Za-z]\w*(?!\w*\()/g) ?? []
      const words = /^(fields|filter|and|like|sort|asc|desc|limit|stats|as|by|calls|code|message|reason|sink|lane)$/
      expect(fields.filter((field) => !words.test(field) && !known.has(field))).toEqual([])
    }
    expect(watch.queries).toHaveLength(5)
  })

  test('no run starts while input arrives: stalled, until one commits', async () => {
    const refused = { fault: 'answered', status: 400, code: 'ExecutionAlreadyExists' } as const
    disturbed.proxy.plan(({ operation }) => operation === 'StartExecution', refused, 1000)
    await sendLines('e')
    await sleep(6000)
    await inMinute(ring)
    await inMinute(ring)
    expect(await inMinute(ring)).toEqual(['Stalled'])
    disturbed.proxy.forget()
    await inMinute(() => catchUp())
    expect(await inMinute(ring)).toEqual([])
  })

  test('a poison record: in the dead letters, and told', async () => {
    expect(await inMinute(() => catchUp('poison', 'f'))).toEqual(['RecordsRejected'])
    await wellAgain()
  })

  test('throttled calls are counted, and told when they are many', async () => {
    const throttled = { fault: 'answered', status: 400, code: 'ThrottlingException' } as const
    let reads = 0
    // Every other one: no call is given up.
    disturbed.proxy.plan(({ operation }) => operation === 'GetItem' && reads++ % 2 === 0, throttled, 12)
    expect(await inMinute(() => catchUp('g'))).toEqual(['CallsThrottled'])
    disturbed.proxy.forget()
    await wellAgain()
  })

  test('a trigger that may not ring fails, and is told', async () => {
    const denied = { fault: 'answered', status: 400, code: 'AccessDeniedException' } as const
    disturbed.proxy.plan(({ operation }) => operation === 'UpdateItem', denied, 1000)
    await sendLines('h')
    expect(await inMinute(ring)).toEqual(['TriggerFails'])
    disturbed.proxy.forget()
    await inMinute(() => catchUp())
    await wellAgain()
  })

  test('a run that is stopped in mid-work is taken over, and told', async () => {
    disturbed.proxy.plan(
      ({ operation, method, caller }) => operation === '' && method === 'PUT' && caller === 'operate',
      {
        fault: 'delayed',
        afterMs: 3000,
      },
    )
    const machines = new SFNClient(disturbed.emulator.client)
    const on = await inMinute(async () => {
      await sendLines('i')
      await ring()
      const { ledger } = deployed.job.place
      let head = await ledger.read('watched')
      for (let tries = 0; tries < 500 && !head?.open; tries++) head = await ledger.read('watched')
      const executionArn = head!.run.place
      await machines.send(new StopExecutionCommand({ executionArn }))
      const type = 'Step Functions Execution Status Change'
      await deployed.invoke('TriggerName', { source: 'aws.states', 'detail-type': type, detail: { executionArn } })
      await catchUp()
    })
    machines.destroy()
    expect(on).toEqual(['RunsDied'])
    await wellAgain()
  })

  test('tasks for which the account has no room are refused by Lambda, and told', async () => {
    const lambda = new LambdaClient({ ...disturbed.emulator.client, maxAttempts: 1 })
    const FunctionName = watch.functionName('Operate')
    await lambda.send(new PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions: 0 }))
    const on = await inMinute(async () => {
      const refused = await lambda.send(new InvokeCommand({ FunctionName })).catch((error: Error) => error.name)
      expect(refused).toBe('TooManyRequestsException')
      // What Lambda itself counts of its functions.
      const point = { namespace: 'AWS/Lambda', name: 'Throttles', dimensions: { FunctionName }, value: 1 }
      points.push({ ...point, atMs: (minute - 1) * minuteMs })
    })
    expect(on).toContain('FunctionsThrottled')
    await lambda.send(new DeleteFunctionConcurrencyCommand({ FunctionName }))
    lambda.destroy()
    await wellAgain()
  })

  test('a topic that was made again parks the pipeline, and that alone is told', async () => {
    await asAdmin(broker, (admin) => admin.deleteTopics({ topics: ['watched-in'] }))
    await asAdmin(broker, (admin) => admin.createTopics({ topics: topics.slice(0, 1), waitForLeaders: true }))
    await sendLines(...Array.from({ length: 30 }, (_, i) => `again ${i}`))
    await inMinute(async () => {
      await ring()
      for (let tries = 0; tries < 300 && !(await deployed.job.place.ledger.read('watched'))?.parked; tries++)
        await sleep(50)
    })
    expect(await inMinute(ring)).toEqual(['Parked'])
    const parked = lines.map((line) => JSON.parse(line)).find(({ event }) => event === 'parked')
    expect(parked).toMatchObject({ code: 'TOPIC_RECREATED', kind: 'failure', run: expect.any(String) })
  })
})
