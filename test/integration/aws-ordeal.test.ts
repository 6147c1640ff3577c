/**
 * Two deployments on one emulator and one broker: one whose calls are counted, one that is disturbed in every way.
 *
 * What functions ask of AWS is recorded all along, and held against their roles at the end. The soak runs the same
 * ordeal in full.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Asked } from '../../lib/testing/counted.ts'
import { countEpochCalls } from '../../lib/testing/epoch-calls.ts'
import { missingEmulatorTool } from '../support/aws-emulator.ts'
import { bootstrap, type Deployed, deploy } from '../support/deployed.ts'
import { type Ask, asksOf, covers, type Grant, grantsOf } from '../support/deployed-calls.ts'
import { epochLines } from '../support/deployed-copy.ts'
import { deployedOrdeal } from '../support/deployed-ordeal.ts'
import { type Disturbed, startDisturbed } from '../support/disturbed.ts'
import type { ProxiedCall } from '../support/fault-proxy.ts'
import { type Broker, missingTool, startBroker } from '../support/kafka-broker.ts'
import { asAdmin, send } from '../support/kafka-topics.ts'
import { runPawl } from '../support/worker-process.ts'

const missing = missingTool() ?? missingEmulatorTool()
const support = fileURLToPath(new URL('../support', import.meta.url))
const entries = { count: join(support, 'deployed-count.ts'), copy: join(support, 'deployed-copy.ts') }
const stackOf = (stageName: string) => `pawl-word-count-${stageName}`
const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }

let disturbed: Disturbed
let broker: Broker
let counting: Deployed
let copying: Deployed
/** Everything that a function asked for, by what is asked. */
const asked = new Map<string, Ask>()
let recent: Ask[] = []

function record(call: ProxiedCall, body: Buffer): void {
  for (const ask of asksOf(call, body)) {
    recent.push(ask)
    asked.set(JSON.stringify({ ...ask, resource: ask.resource.replace(/\/pipelines\/.*/, '/…') }), ask)
  }
}

/** Lets the copy do so many epochs in one run; answers with what that took. */
async function copyEpochs(epochs: number) {
  for (;;) {
    const taken = await copyOnce(epochs)
    // The schedule may ring as well, once a minute: then it is counted again.
    if (taken.rings === 1) return taken
  }
}

async function copyOnce(epochs: number) {
  const messages = Array.from({ length: epochs * epochLines }, (_, i) => ({ value: `line ${i}` }))
  const before = await copying.job.place.ledger.read('copy')
  recent = []
  await send(broker, 'copy-lines', messages)
  await copying.invoke('TriggerName', tick)
  await copying.untilAtRest(60_000)
  const after = await copying.job.place.ledger.read('copy')
  expect((after?.committed.epoch ?? 0) - (before?.committed.epoch ?? 0)).toBe(epochs)
  const [{ arn }] = await copying.executions()
  const states = await copying.states(arn)
  const counted = (action: RegExp) => recent.filter((ask) => action.test(ask.action)).length
  return {
    // The emulator does not show the states within a Map: one task and one lane an epoch.
    transitions: states.length + 2 * epochs,
    waits: states.filter((name) => name === 'Wait').length,
    s3Writes: counted(/^s3:PutObject/),
    s3Reads: counted(/^s3:GetObject/),
    s3Lists: counted(/^s3:ListBucket/),
    dynamoReads: counted(/^dynamodb:(GetItem|Query)/),
    dynamoWrites: counted(/^dynamodb:(Put|Update|Delete)Item/),
    starts: counted(/^states:StartExecution/),
    rings: recent.filter(
      ({ action, leadingKey }) => action === 'dynamodb:UpdateItem' && leadingKey === 'PIPELINE#copy#WAKES',
    ).length,
  }
}

/** Requests an epoch, in the words of `pawl cost`. */
function counted(each: (of: 's3Writes' | 's3Reads' | 's3Lists' | 'dynamoWrites' | 'dynamoReads') => number) {
  return {
    'S3 PUT and LIST': each('s3Writes') + each('s3Lists'),
    'S3 GET': each('s3Reads'),
    'DynamoDB items written': each('dynamoWrites'),
    'DynamoDB items read': each('dynamoReads'),
  }
}

/** What `pawl cost` counts for the same epochs is what functions really asked for, within 5 %. */
async function expectCounted(real: ReturnType<typeof counted> & { readonly transition: number }): Promise<void> {
  const shape = { sources: 1, partitions: 1, stateful: 0, lanes: [1], shards: 1, split: false }
  const { epoch } = await countEpochCalls({ ...shape, intervalMs: 100, backlog: true })
  const sum = (...asked: Asked[]) =>
    Object.values(epoch).reduce((all, own) => all + asked.reduce((one, name) => one + (own[name] ?? 0), 0), 0)
  const foretold: typeof real = {
    transition: sum('transition'),
    'S3 PUT and LIST': sum('PutObject', 'ListObjects'),
    'S3 GET': sum('GetObject'),
    // The commit writes the head and its history.
    'DynamoDB items written': sum('PutItem', 'UpdateItem') + 2 * sum('TransactWriteItems'),
    'DynamoDB items read': sum('GetItem', 'Query'),
  }
  console.log(JSON.stringify({ real, foretold }))
  for (const name of Object.keys(real) as (keyof typeof real)[])
    expect(Math.abs(foretold[name] / real[name] - 1), name).toBeLessThanOrEqual(0.05)
}

/** What roles allow and no test makes a function do; each with its reason. */
const reasons: readonly { readonly grants: RegExp; readonly reason: string }[] = [
  { grants: /^\w+ logs:/, reason: 'Lambda writes the logs of a function in its name' },
  { grants: /^\w+ s3:ListBucket /, reason: 'without it a missing object looks like a forbidden one' },
  { grants: /^\w+ s3:AbortMultipartUpload /, reason: 'only a large upload that fails is aborted' },
  { grants: /^plan states:DescribeExecution /, reason: 'asks whether another run that holds the pipeline is gone' },
  { grants: /^plan (states:StartExecution|dynamodb:UpdateItem) /, reason: 'a long run hands over to a fresh one' },
  { grants: /^finalize (s3:DeleteObject|dynamodb:GetItem .*HISTORY)/, reason: 'collects every ten epochs' },
  { grants: /^doctor /, reason: 'is called by a person' },
  { grants: /^abort s3:GetObject /, reason: 'an attempt may have been given up before any task had a result' },
  {
    grants: /^(operate|precommit|promote|collect) dynamodb:PutItem PIPELINE#ordeal$/,
    reason: 'renews the lease after a quarter of it; collect raises what is retained',
  },
  {
    grants: /^(commit|promote) dynamodb:GetItem PIPELINE#ordeal#HISTORY$/,
    reason: 'tells whose an epoch became after a lost answer, and what a marker means',
  },
]

const shown = ({ caller, action, resource, leadingKey }: Grant) => `${caller} ${action} ${leadingKey ?? resource}`

describe.skipIf(missing !== null)('a disturbed deployment', () => {
  beforeAll(async () => {
    ;[disturbed, broker] = await Promise.all([startDisturbed(record), startBroker()])
    const { emulator } = disturbed
    const topics = ['lines', 'word-counts', 'copy-lines', 'copies'].map((topic) => {
      return { topic, numPartitions: topic === 'copy-lines' ? 1 : 4 }
    })
    await asAdmin(broker, (admin) => admin.createTopics({ topics, waitForLeaders: true }))
    await bootstrap({ emulator, broker })
    copying = await deploy({ emulator, broker, stageName: 'copy', entry: entries.copy })
    counting = await deploy({ emulator, broker, stageName: 'dev', entry: entries.count })
  }, 300_000)

  afterAll(async () => {
    await Promise.all([copying?.close(), counting?.close()])
    await Promise.all([disturbed?.remove(), broker?.remove()])
  })

  test('an epoch takes ten transitions, five writes to S3 and five to DynamoDB at most', async () => {
    await copyEpochs(1)
    const one = await copyEpochs(1)
    // Ten more, so that one of them collects.
    const many = await copyEpochs(11)
    const each = (of: Exclude<keyof typeof one, 'starts' | 'rings'>) => (many[of] - one[of]) / 10
    console.log(JSON.stringify({ one, many }))
    const writes = { s3: Math.round(each('s3Writes')), dynamo: Math.round(each('dynamoWrites')) }
    expect({ starts: [one.starts, many.starts], ...writes }).toEqual({
      starts: [1, 1],
      s3: 4,
      dynamo: 4,
    })
    // A wait for the checkpoint interval, with the plan and the choice around it, belongs to no epoch.
    const waits = (many.waits - one.waits) * 3
    expect((many.transitions - one.transitions - waits) / 10).toBe(10)
    await expectCounted({ transition: 10, ...counted(each) })
  }, 120_000)

  test('a tick at rest starts no execution and writes nothing', async () => {
    recent = []
    const before = await copying.executions()
    await copying.invoke('TriggerName', tick)
    expect(recent.map(({ action }) => action).filter((action) => !/:Get|:List/.test(action))).toEqual([])
    expect(await copying.executions()).toEqual(before)
  })

  test('cases 66 and 67: loses and repeats nothing, whatever happens to functions, calls, rings, broker and emulator', async () => {
    const deeds = { kills: 5, stops: 1, twins: 1, late: 1, brokers: 1, emulators: 1 }
    const result = await deployedOrdeal({ disturbed, broker, deployed: counting }, { ...deeds, seed: 5, lines: 10_000 })
    console.log(JSON.stringify({ ...result, faults: undefined }))
    expect(result.faults).toEqual([])
    expect(result.done).toEqual(deeds)
    expect(result.wrongCalls).toBeGreaterThan(5)
  }, 300_000)

  test('the command finds the deployment sound by the name of its stack', async () => {
    const options = { env: disturbed.emulator.environment }
    const words = ['--stack', stackOf('dev'), '--file', entries.count, '--bootstrap', broker.bootstrap]
    const { code, stdout, stderr } = await runPawl(['verify', ...words], options)
    expect(`${stdout}${stderr}`).toMatch(/^markers +1 lane$[\s\S]*^orphans +none$[\s\S]*^verdict +sound$/m)
    expect(code).toBe(0)
    const epochs = await runPawl(['epochs', '--last', '1000', '--stack', stackOf('dev')], options)
    expect(epochs.stdout).toMatch(/^state +at rest$/m)
    expect((await runPawl(['show', 'last', '--stack', stackOf('dev')], options)).stdout).toMatch(/^pipeline +ordeal$/m)
    expect((await runPawl(['status', '--stack', stackOf('dev')], options)).code).toBe(0)
    const stack = ['--stack', stackOf('dev'), '--bootstrap', broker.bootstrap]
    const listed = await runPawl(['sinks', 'list', entries.count, ...stack], options)
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/epoch \d+ of incarnation .* sound$/m) })
    expect((await runPawl(['sinks', 'adopt', entries.count, '--yes', ...stack], options)).stdout).toBe(
      'no lane to adopt\n',
    )
  })

  test('roles allow what functions asked for, and nothing more without a reason', async () => {
    const { client } = disturbed.emulator
    const own = await grantsOf(client, stackOf('dev'))
    const grants = [...own, ...(await grantsOf(client, stackOf('copy')))]
    const asks = [...asked.values()]
    expect(asks.filter((ask) => !grants.some((grant) => covers(grant, ask)))).toEqual([])
    // The copy saw no trouble: only the word count had occasion for all that it may do.
    const unused = own.filter((grant) => !asks.some((ask) => covers(grant, ask))).map(shown)
    console.log(JSON.stringify({ asks: asks.length, grants: own.length, unused: unused.length }))
    expect(reasons.filter(({ grants: pattern }) => !own.some((grant) => pattern.test(shown(grant))))).toEqual([])
    expect(unused.filter((text) => !reasons.some(({ grants: pattern }) => pattern.test(text)))).toEqual([])
  })
})
