import { beforeEach, describe, expect, test } from 'vitest'
import { interpreter } from '../../lib/adapters/interpreter/machine.ts'
import { stepCalls } from '../../lib/epoch/execute.ts'
import type { Job } from '../../lib/epoch/job.ts'
import { machine, type StepName, stepNames } from '../../lib/epoch/machine.ts'
import { wake } from '../../lib/epoch/wake.ts'
import type { ProgressEvent } from '../../lib/model/event.ts'
import { text } from '../../lib/model/serde.ts'
import { wakeOf } from '../../lib/model/wake.ts'
import { StateCache } from '../../lib/state/cache.ts'
import { compile } from '../../lib/stream/compile.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { type MemoryPlace, memoryPlace } from './memory-place.ts'

const compiled = compile(
  pipeline('words', { checkpoint: { intervalMs: 0 } })
    .from(topic('in', { value: text() }))
    .to('out', topic('out', { value: text() })),
)

let memory: MemoryPlace
let job: Job
let events: ProgressEvent[]
/** What the launcher says of every place. */
let status: 'running' | 'gone' | 'unknown'

beforeEach(() => {
  events = []
  status = 'gone'
  memory = memoryPlace(compiled, 2, (event) => events.push(event))
  const launcher = { ...memory.place.launcher, status: async () => status }
  job = { compiled, place: { ...memory.place, launcher }, states: new StateCache(), warm: new Map() }
})

async function append(partition: number, count: number): Promise<void> {
  const records = Array.from({ length: count }, (_, i) => ({
    key: null,
    value: Buffer.from(`${i}`),
    timestampMs: 0,
    headers: [],
  }))
  await memory.logs.get('in')!.append(partition, records)
}

/** Walks every run that a ring started, to its end. */
async function walk(): Promise<void> {
  const resources = Object.fromEntries(stepNames.map((name) => [name, `local:${name}`])) as Record<StepName, string>
  const definition = machine({ resources, settings: compiled.settings })
  const walked = await interpreter({ definition, steps: stepCalls(job), clock: job.place.clock, retryPauseMs: 1 })
  for (let start = memory.place.starts.shift(); start; start = memory.place.starts.shift()) {
    const { pipeline: id, sequence } = start
    const run = {
      pipeline: id,
      id: `run-${sequence}`,
      sequence,
      place: `place-${sequence}`,
      lingerMs: 0,
      resume: false,
      startedAtMs: 0,
    }
    await walked.run({ run })
  }
}

const recordsEvent = (...records: readonly (readonly [partition: number, offset: number, topic?: string])[]) =>
  wakeOf({
    eventSource: 'aws:kafka',
    records: Object.fromEntries(
      records.map(([partition, offset, name = 'in']) => [`${name}-${partition}`, [{ topic: name, partition, offset }]]),
    ),
  })
const tick = wakeOf({ source: 'aws.events', 'detail-type': 'Scheduled Event' })

describe('an event of records', () => {
  test('starts the first run of a pipeline that has no head', async () => {
    expect(await wake(job, recordsEvent([0, 0]))).toEqual({ rung: true, run: 'started' })
    expect(memory.place.starts).toEqual([{ pipeline: 'words', sequence: 1, wakes: 1 }])
  })

  test('case 67: rings nothing when all that it names is committed, however often it comes', async () => {
    await append(0, 3)
    await wake(job, recordsEvent([0, 2]))
    await walk()
    const again = await Promise.all([wake(job, recordsEvent([0, 2])), wake(job, recordsEvent([0, 0]))])
    expect(again).toEqual([
      { rung: false, reason: 'committed' },
      { rung: false, reason: 'committed' },
    ])
    expect(memory.place.starts).toEqual([])
  })

  test('rings when one of its partitions has anything new', async () => {
    await append(0, 3)
    await wake(job, recordsEvent([0, 2]))
    await walk()
    expect(await wake(job, recordsEvent([0, 1], [1, 0]))).toEqual({ rung: true, run: 'started' })
  })

  test('of a topic that the pipeline does not read rings nothing', async () => {
    await wake(job, tick)
    await walk()
    expect(await wake(job, recordsEvent([0, 9, 'other']))).toEqual({ rung: false, reason: 'committed' })
  })

  test('is absorbed by a run that holds the pipeline, and counted', async () => {
    await wake(job, tick)
    await walk()
    const head = (await memory.ledger.read('words'))!
    const held = { ...head, revision: head.revision + 1, write: 'held', run: { ...head.run, open: true } }
    await memory.ledger.swap(head.revision, held)
    status = 'running'
    const before = await memory.ledger.wakes('words')
    expect(await wake(job, recordsEvent([0, 5]))).toEqual({ rung: true, run: 'absorbed' })
    expect(await memory.ledger.wakes('words')).toBe(before + 1)
  })

  test('does not disturb a pipeline that waits for a person', async () => {
    await wake(job, tick)
    await walk()
    const head = (await memory.ledger.read('words'))!
    const parked = {
      kind: 'failure',
      code: 'X',
      message: '',
      sinceMs: 0,
      retryAtMs: null,
      retries: 0,
      build: compiled.build,
    } as const
    await memory.ledger.swap(head.revision, { ...head, revision: head.revision + 1, write: 'parked', parked })
    expect(await wake(job, recordsEvent([0, 5]))).toEqual({ rung: false, reason: 'parked' })
  })
})

test('a person who resumes starts a run that lifts the park', async () => {
  await wake(job, tick)
  await walk()
  expect(await wake(job, wakeOf({ resume: true }))).toEqual({ rung: true, run: 'started' })
  expect(memory.place.starts).toEqual([{ pipeline: 'words', sequence: 2, wakes: 2, resume: true }])
})

describe('a tick', () => {
  test('reports lag, and starts nothing when there is nothing to do', async () => {
    await append(1, 4)
    await wake(job, tick)
    await walk()
    events.length = 0
    expect(await wake(job, tick)).toEqual({ rung: false, reason: 'at-rest' })
    const lag = [0, 1].map((partition) => ({ source: 'in', topic: 'in', partition, records: '0', ageMs: null }))
    const well = { lag, stalledMs: 0, unpromotedMs: 0, parked: null }
    expect(events).toMatchObject([{ event: 'health', pipeline: 'words', run: 'run-1', epoch: 1, ...well }])
    expect(events).toHaveLength(1)
    await append(0, 7)
    expect(await wake(job, tick)).toEqual({ rung: true, run: 'started' })
    expect(events.at(-1)).toMatchObject({ event: 'health', lag: [{ records: '7' }, { records: '0' }] })
  })

  test('retries a parked promotion once its time has come', async () => {
    await wake(job, tick)
    await walk()
    const head = (await memory.ledger.read('words'))!
    const parked = {
      kind: 'promotion',
      code: 'X',
      message: '',
      sinceMs: 0,
      retryAtMs: 1,
      retries: 1,
      build: compiled.build,
    } as const
    await memory.ledger.swap(head.revision, {
      ...head,
      revision: head.revision + 1,
      write: 'parked',
      parked,
      promotedThrough: -1,
    })
    expect(await wake(job, tick)).toEqual({ rung: true, run: 'started' })
  })
})

describe('the end of an execution', () => {
  const death = (place: string) =>
    wakeOf({
      source: 'aws.states',
      'detail-type': 'Step Functions Execution Status Change',
      detail: { executionArn: place, status: 'FAILED' },
    })

  test('starts the next run when the dead one held the pipeline, and nothing otherwise', async () => {
    await wake(job, tick)
    await walk()
    const head = (await memory.ledger.read('words'))!
    const held = {
      ...head,
      revision: head.revision + 1,
      write: 'held',
      run: { ...head.run, open: true, place: 'dead' },
    }
    await memory.ledger.swap(head.revision, held)
    expect(await wake(job, death('another'))).toEqual({ rung: false, reason: 'other-run' })
    expect(await wake(job, death('dead'))).toEqual({ rung: true, run: 'started' })
    expect(memory.place.starts[0].sequence).toBe(head.run.sequence + 1)
  })
})
