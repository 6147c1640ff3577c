import { describe, expect, test } from 'vitest'
import { diagnose, type Finding, type Patient } from '../../lib/epoch/diagnose.ts'
import { machine, type StepName, stepNames } from '../../lib/epoch/machine.ts'
import { PawlError } from '../../lib/index.ts'
import type { Head } from '../../lib/model/head.ts'
import type { ClusterSpec } from '../../lib/ports/spec.ts'
import type { Surroundings, TopicOperation, TopicReport } from '../../lib/ports/surroundings.ts'
import { createDriver } from '../../lib/testing/drive.ts'
import { type Workbench, workbench } from './support.ts'

const everything: ReadonlySet<TopicOperation> = new Set(['Read', 'Write', 'Describe', 'DescribeConfigs'])
const dayMs = 86_400_000
const control = 'pawl-control-dev-counting-counts'

/** A cluster that answers a doctor; its topics are changed by the set-up. */
function clusterOf(change: (report: TopicReport) => TopicReport): ClusterSpec {
  const refuse = async () => {
    throw new PawlError('ASSERTION_FAILED', 'a doctor opens nothing here')
  }
  return {
    kind: 'fake',
    openSource: refuse,
    openSink: refuse,
    controlTopic: () => control,
    inspect: async (topics) =>
      topics.map((topic) => {
        const policy = topic === control ? 'compact' : 'delete'
        const configs = new Map([
          ['cleanup.policy', policy],
          ['retention.ms', String(7 * dayMs)],
        ])
        return change({ topic, exists: true, operations: everything, configs })
      }),
  }
}

function surroundingsOf({ job }: Workbench): Surroundings {
  const resources = Object.fromEntries(stepNames.map((step) => [step, `arn:${step}:7`])) as Record<StepName, string>
  const { clock } = job.place
  return {
    serverTimes: async () => [{ server: 'dynamodb', atMs: clock.nowMs() - 400, hereMs: clock.nowMs() }],
    workflow: 'express',
    definition: async () =>
      JSON.stringify(machine({ resources, settings: job.compiled.settings, workflow: 'express' })),
    mappings: async () => [{ topics: ['lines'], state: 'Enabled', result: 'OK' }],
    concurrency: async () => ({ account: 1000, unreserved: 900 }),
    readSecret: async () => ({}),
  }
}

interface SetUp {
  readonly topic?: (report: TopicReport) => TopicReport
  readonly surroundings?: (whole: Surroundings, bench: Workbench) => Partial<Surroundings>
  readonly place?: (bench: Workbench) => Partial<Workbench['job']['place']>
  readonly before?: (bench: Workbench) => Promise<void> | void
}

/** Everything that a doctor finds in a pipeline that has run, and is then broken. */
async function findings({
  topic = (report) => report,
  surroundings,
  place,
  before,
}: SetUp): Promise<readonly Finding[]> {
  const bench = workbench({ partitions: 1 })
  bench.append(0, 'a', 'b')
  bench.world.starts.push({ pipeline: 'counting', sequence: 1, wakes: 0 })
  await createDriver({ world: bench.world, mortal: true, script: () => () => null }).untilQuiet()
  await before?.(bench)
  const whole = surroundingsOf(bench)
  const patient: Patient = {
    job: { ...bench.job, place: { ...bench.job.place, ...place?.(bench) } },
    cluster: clusterOf(topic),
    stage: 'dev',
    surroundings: { ...whole, ...surroundings?.(whole, bench) },
  }
  return diagnose(patient)
}

const throws = (code: ConstructorParameters<typeof PawlError>[0], fault: string) => async (): Promise<never> => {
  throw new PawlError(code, fault)
}
const topicNamed = (topic: string, change: Partial<TopicReport>) => (report: TopicReport) =>
  report.topic === topic ? { ...report, ...change } : report
const put = async ({ world, head }: Workbench, change: Partial<Head>) => {
  const now = await head()
  await world.ledger.swap(now.revision, { ...now, ...change, revision: now.revision + 1, write: 'x' })
}

/** What is broken, and what the doctor must say of it. */
const setUps: readonly (readonly [name: string, setUp: SetUp, level: 'fail' | 'warn', check: string, says: RegExp])[] =
  [
    [
      'a wrong broker address',
      { place: () => ({ source: throws('BROKER_UNREACHABLE', 'b-1:9092') }) },
      'fail',
      'source lines',
      /BROKER_UNREACHABLE.*b-1:9092/,
    ],
    [
      'a wrong password',
      { place: () => ({ source: throws('AUTHENTICATION_FAILED', 'user pawl') }) },
      'fail',
      'source lines',
      /AUTHENTICATION_FAILED.*check user, password/,
    ],
    [
      'a missing topic',
      { topic: topicNamed('lines', { exists: false }) },
      'fail',
      'source lines',
      /TOPIC_MISSING there is no topic lines.*create lines/,
    ],
    [
      'a missing right to read',
      { topic: topicNamed('lines', { operations: new Set(['Describe']) }) },
      'fail',
      'source lines',
      /AUTHORIZATION_FAILED .*may not Read lines.*grant the principal Read/,
    ],
    [
      'a missing right to write',
      { topic: topicNamed('counts', { operations: new Set(['Describe']) }) },
      'fail',
      'sink counts',
      /AUTHORIZATION_FAILED .*may not Write counts/,
    ],
    [
      'a control topic that is deleted by age',
      { topic: topicNamed(control, { configs: new Map([['cleanup.policy', 'delete']]) }) },
      'fail',
      'control topic of counts',
      /CONTROL_TOPIC_INVALID .*cleanup.policy=delete.*set cleanup.policy=compact/,
    ],
    [
      'a control topic that is gone',
      { topic: topicNamed(control, { exists: false }) },
      'fail',
      'control topic of counts',
      /TOPIC_MISSING/,
    ],
    [
      'a bucket that is gone',
      { place: (bench) => ({ store: { ...bench.job.place.store, read: throws('AWS_RESOURCE_MISSING', 'bucket b') } }) },
      'fail',
      'store',
      /AWS_RESOURCE_MISSING.*bucket b.*deploy again/,
    ],
    [
      'a table that is gone',
      {
        place: (bench) => ({ ledger: { ...bench.job.place.ledger, read: throws('AWS_RESOURCE_MISSING', 'table t') } }),
      },
      'fail',
      'ledger',
      /AWS_RESOURCE_MISSING.*table t/,
    ],
    [
      'a clock that is minutes off',
      {
        surroundings: ({ serverTimes }) => ({
          serverTimes: async () => (await serverTimes()).map((at) => ({ ...at, atMs: at.atMs + 300_000 })),
        }),
      },
      'fail',
      'clock',
      /differ by 300\.\d s.*NTP/,
    ],
    [
      'a clock that is seconds off',
      {
        surroundings: ({ serverTimes }) => ({
          serverTimes: async () => (await serverTimes()).map((at) => ({ ...at, atMs: at.atMs - 9000 })),
        }),
      },
      'warn',
      'clock',
      /differ by 8\.9 s/,
    ],
    [
      'unread input that is older than its retention allows',
      {
        before: (bench) => {
          bench.append(0, 'old')
          bench.world.clock.advance(6.9 * dayMs)
        },
      },
      'fail',
      'retention of lines',
      /596160 s old, the topic keeps 604800 s.*raise retention.ms/,
    ],
    [
      'unread input that the broker has deleted',
      {
        before: (bench) => {
          bench.append(0, 'lost', 'kept')
          bench.world.logs.get('lines')!.truncateBefore(0, 3n)
        },
      },
      'fail',
      'retention of lines',
      /LOG_OFFSET_LOST partition 0 begins at 3, 2 comes next/,
    ],
    [
      'a disabled mapping',
      { surroundings: () => ({ mappings: async () => [{ topics: ['lines'], state: 'Disabled', result: null }] }) },
      'fail',
      'mapping lines',
      /it is Disabled.*enable/,
    ],
    [
      'a mapping that cannot read',
      {
        surroundings: () => ({
          mappings: async () => [{ topics: ['lines'], state: 'Enabled', result: 'PROBLEM: access denied' }],
        }),
      },
      'fail',
      'mapping lines',
      /reads nothing: PROBLEM/,
    ],
    [
      'a Lambda that the network does not reach',
      { surroundings: () => ({ mappings: throws('LAUNCHER_UNAVAILABLE', 'list the mappings') }) },
      'warn',
      'mapping',
      /LAUNCHER_UNAVAILABLE.*add an endpoint/,
    ],
    [
      'concurrency that others have taken',
      { surroundings: () => ({ concurrency: async () => ({ account: 10, unreserved: 1 }) }) },
      'fail',
      'concurrency',
      /1 of 10 .*up to 3.*quota/,
    ],
    [
      'a secret that may not be read',
      { surroundings: () => ({ readSecret: throws('AWS_ACCESS_DENIED', 'secret s') }) },
      'fail',
      'secret',
      /AWS_ACCESS_DENIED/,
    ],
    [
      'a state machine that is gone',
      { surroundings: () => ({ definition: async () => null }) },
      'fail',
      'state machine',
      /does not exist/,
    ],
    [
      'a state machine that somebody edited',
      { surroundings: () => ({ definition: async () => '{"States":{}}' }) },
      'warn',
      'state machine',
      /another build/,
    ],
    [
      'a marker that is gone',
      {
        place: ({ job }) => ({
          sink: async (...call) => ({ ...(await job.place.sink(...call)), marker: async () => null }),
        }),
      },
      'fail',
      'lane counts/0',
      /MARKER_MISSING/,
    ],
    [
      'a park',
      {
        before: (bench) =>
          put(bench, {
            parked: {
              kind: 'failure',
              code: 'OPERATOR_FAILED',
              message: 'm',
              sinceMs: 1,
              retryAtMs: null,
              retries: 0,
              build: 'b',
            },
          }),
      },
      'fail',
      'ledger',
      /OPERATOR_FAILED .*parked: m.*pawl resume/,
    ],
  ]

describe('a doctor', () => {
  test('finds a whole pipeline well', async () => {
    const found = await findings({})
    expect(found.filter(({ level }) => level !== 'ok')).toEqual([])
    expect(found.map(({ check }) => check)).toEqual([
      ...['ledger', 'store', 'clock', 'secret', 'state machine', 'mapping lines', 'concurrency'],
      ...['source lines', 'retention of lines', 'sink counts', 'control topic of counts', 'lane counts/0'],
    ])
  })

  test.each(setUps)('names %s, and how to mend it', async (_, setUp, level, check, says) => {
    const found = await findings(setUp)
    const ill = found.filter((finding) => finding.level !== 'ok')
    const named = ill.find((finding) => finding.check === check)
    expect(named, JSON.stringify(ill)).toMatchObject({ level, mend: expect.any(String) })
    expect([named?.code, named?.text, named?.mend].join(' ')).toMatch(says)
  })
})
