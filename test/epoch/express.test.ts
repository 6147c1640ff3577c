import { beforeEach, expect, test } from 'vitest'
import { interpreter } from '../../lib/adapters/interpreter/machine.ts'
import { stepCalls } from '../../lib/epoch/execute.ts'
import type { Job } from '../../lib/epoch/job.ts'
import { machine, type StepName, stepNames } from '../../lib/epoch/machine.ts'
import { ring } from '../../lib/epoch/ring.ts'
import { wake } from '../../lib/epoch/wake.ts'
import { text } from '../../lib/model/serde.ts'
import { expressSettings } from '../../lib/model/settings.ts'
import { wakeOf } from '../../lib/model/wake.ts'
import { StateCache } from '../../lib/state/cache.ts'
import { compile } from '../../lib/stream/compile.ts'
import { pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { type MemoryPlace, memoryPlace } from './memory-place.ts'

const plain = compile(
  pipeline('words', { checkpoint: { intervalMs: 0 } })
    .from(topic('in', { value: text() }))
    .to('out', topic('out', { value: text() })),
)
const compiled = { ...plain, settings: expressSettings(plain.settings) }

let memory: MemoryPlace
let job: Job
let nowMs: number

beforeEach(() => {
  nowMs = Date.now()
  memory = memoryPlace(compiled, 1, () => {})
  const { place } = memory
  const launcher = { ...place.launcher, blind: true, status: async () => 'unknown' as const }
  const clock = { ...place.clock, nowMs: () => nowMs }
  job = { compiled, place: { ...place, launcher, clock }, states: new StateCache(), warm: new Map() }
})

const run = {
  pipeline: 'words',
  id: 'given',
  sequence: 1,
  place: 'there',
  lingerMs: 0,
  resume: false,
  startedAtMs: Date.now(),
}

async function walk(): Promise<void> {
  const resources = Object.fromEntries(stepNames.map((name) => [name, `local:${name}`])) as Record<StepName, string>
  const definition = machine({ resources, settings: compiled.settings, workflow: 'express' })
  const walked = await interpreter({ definition, steps: stepCalls(job), clock: job.place.clock, retryPauseMs: 1 })
  await walked.run({ run: { ...run, startedAtMs: nowMs } })
}

test('two executions of one start are two runs, of which one works', async () => {
  await memory.logs.get('in')!.append(0, [{ key: null, value: 'a', timestampMs: 0 }])
  await Promise.all([walk(), walk()])
  const head = (await memory.ledger.read('words'))!
  expect(head.run.id).toMatch(/^[0-9a-f]{32}$/)
  expect([head.generation, head.committed.epoch, head.promotedThrough]).toEqual([1, 1, 1])
  expect(memory.sinks.get('out')!.visible()).toHaveLength(1)
})

/** The head as a run leaves it that is at work, or died there. */
async function held(): Promise<void> {
  await walk()
  const head = (await memory.ledger.read('words'))!
  const open = { ...head.run, open: true, renewedAtMs: nowMs }
  await memory.ledger.swap(head.revision, { ...head, revision: head.revision + 1, write: 'held', run: open })
}

test('a ring starts nothing while the lease is fresh, and a run that watches once it is not', async () => {
  await held()
  const { leaseMs } = compiled.settings
  nowMs += leaseMs * 0.74
  expect(await ring(job.place, 'words')).toBe('absorbed')
  nowMs += leaseMs * 0.02
  expect(await ring(job.place, 'words')).toBe('started')
  expect(memory.place.starts).toHaveLength(1)
})

test('events, of which there are many, leave a run that may be dead to the schedule', async () => {
  await held()
  nowMs += 10 * compiled.settings.leaseMs
  const event = { eventSource: 'aws:kafka', records: { 'in-0': [{ topic: 'in', partition: 0, offset: 7 }] } }
  expect(await wake(job, wakeOf(event))).toEqual({ rung: true, run: 'absorbed' })
  await memory.logs.get('in')!.append(0, [{ key: null, value: 'a', timestampMs: 0 }])
  const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }
  expect(await wake(job, wakeOf(tick))).toEqual({ rung: true, run: 'started' })
})
