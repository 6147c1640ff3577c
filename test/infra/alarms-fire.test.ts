import { beforeEach, describe, expect, test } from 'vitest'
import { emfTelemetry } from '../../lib/adapters/cloudwatch/telemetry.ts'
import { interpreter } from '../../lib/adapters/interpreter/machine.ts'
import { virtualClock } from '../../lib/adapters/memory/clock.ts'
import { stepCalls } from '../../lib/epoch/execute.ts'
import type { Job } from '../../lib/epoch/job.ts'
import { machine, type StepName, stepNames } from '../../lib/epoch/machine.ts'
import { pause } from '../../lib/epoch/steer.ts'
import { wake } from '../../lib/epoch/wake.ts'
import { PawlError } from '../../lib/model/errors.ts'
import { json, text } from '../../lib/model/serde.ts'
import { wakeOf } from '../../lib/model/wake.ts'
import type { Place } from '../../lib/ports/place.ts'
import { StateCache } from '../../lib/state/cache.ts'
import { compile } from '../../lib/stream/compile.ts'
import { deadLetter, pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { memoryPlace } from '../epoch/memory-place.ts'
import { type AlarmProps, type Datapoint, datapointsOf, isAlarming } from '../support/alarm-state.ts'
import { deploy } from './deployment.ts'

/** As synthesised for a pipeline of this id in stage `test`, with the default checkpoint settings. */
const alarms = Object.entries(deploy().all('AWS::CloudWatch::Alarm')).map(([id, { Properties }]) => {
  return [/Observability([A-Z]\w+?)[0-9A-F]{8}$/.exec(id)![1], Properties as AlarmProps] as const
})
const tick = wakeOf({ source: 'aws.events', 'detail-type': 'Scheduled Event' })
const minuteMs = 60_000
const startMs = 1_700_000_040_000

const strict = compile(
  pipeline('word-count', { restart: { strategy: 'none' } })
    .from(topic('lines', { value: text() }))
    .map((line) => {
      if (line === 'poison') throw new Error('cannot stomach it')
      return line
    })
    .to('copies', topic('copies', { value: text() })),
)
const lenient = compile(
  pipeline('word-count', { onError: deadLetter('dead', topic('dead', { value: json<unknown>() })) })
    .from(topic('lines', { value: text() }))
    .map((line) => {
      if (line === 'poison') throw new Error('cannot stomach it')
      return line
    })
    .to('copies', topic('copies', { value: text() })),
)

/** A deployment in which minutes pass by hand: each has a tick, and the runs that it starts are walked to their end. */
class Watched {
  readonly clock = virtualClock({ startMs })
  readonly memory
  readonly lines: string[] = []
  readonly points: Datapoint[] = []
  job: Job
  /** Whether executions that were started ever run. */
  runsStart = true
  usage: Place['usage']

  constructor(compiled = strict) {
    this.memory = memoryPlace(compiled, 1, () => undefined)
    const write = (line: string) => void this.lines.push(line)
    const telemetry = emfTelemetry({ write, namespace: 'Pawl/test', nowMs: () => this.clock.nowMs() })
    const place = { ...this.memory.place, clock: this.clock, telemetry, usage: () => this.usage?.() as never }
    this.job = { compiled, place, states: new StateCache(), warm: new Map() }
  }

  async send(...values: readonly string[]): Promise<void> {
    const timestampMs = this.clock.nowMs()
    const records = values.map((value) => ({ key: null, value: Buffer.from(value), timestampMs, headers: [] }))
    await this.memory.logs.get('lines')!.append(0, records)
  }

  /** Lets minutes pass; answers with every alarm that was on at the end of any of them. */
  async minutes(count: number, each: () => Promise<unknown> = async () => undefined): Promise<string[]> {
    const fired = new Set<string>()
    for (let i = 0; i < count; i++) {
      const endMs = Math.ceil((this.clock.nowMs() + 1) / minuteMs) * minuteMs
      await each()
      await wake(this.job, tick).catch(() => this.#lambda('Errors'))
      if (this.runsStart) await this.#walk()
      const leftMs = endMs - this.clock.nowMs()
      if (leftMs > 0) this.clock.advance(leftMs)
      for (const name of this.on()) fired.add(name)
    }
    return [...fired].sort()
  }

  /** Alarms that are on now. */
  on(): string[] {
    const atMs = Math.floor(this.clock.nowMs() / minuteMs) * minuteMs
    const points = [...datapointsOf(this.lines), ...this.points]
    return alarms.filter(([, alarm]) => isAlarming(alarm, points, atMs)).map(([name]) => name)
  }

  /** What Lambda itself counts of its functions. */
  #lambda(name: 'Errors' | 'Throttles'): void {
    const dimensions = { FunctionName: 'trigger' }
    this.points.push({ namespace: 'AWS/Lambda', name, dimensions, value: 1, atMs: this.clock.nowMs() })
  }

  async #walk(): Promise<void> {
    const resources = Object.fromEntries(stepNames.map((name) => [name, `local:${name}`])) as Record<StepName, string>
    const definition = machine({ resources, settings: this.job.compiled.settings })
    const { clock } = this
    const walked = await interpreter({ definition, steps: stepCalls(this.job), clock, retryPauseMs: 1 })
    for (let start = this.memory.place.starts.shift(); start; start = this.memory.place.starts.shift()) {
      const { pipeline: id, sequence, resume = false } = start
      const run = { pipeline: id, id: `run-${sequence}`, sequence, place: `place-${sequence}`, lingerMs: 0, resume }
      await walked.run({ run: { ...run, startedAtMs: clock.nowMs() } })
    }
  }
}

let watched: Watched

beforeEach(async () => {
  watched = new Watched()
  await watched.send('a')
  // Before the first ticks of a new deployment there is silence, which is bad news.
  expect(await watched.minutes(3)).toEqual(['Stalled'])
  expect(watched.on()).toEqual([])
})

describe('no alarm fires', () => {
  test('while input trickles in and is committed', async () => {
    expect(await watched.minutes(20, () => watched.send('a', 'b'))).toEqual([])
  })

  test('for the first records after a quiet night, nor for a replay of old ones', async () => {
    expect(await watched.minutes(300)).toEqual([])
    await watched.memory.logs
      .get('lines')!
      .append(0, [{ key: null, value: Buffer.from('old'), timestampMs: 1_000, headers: [] }])
    expect(await watched.minutes(5)).toEqual([])
  })
})

test('a pipeline that a person has paused fires none, however much waits', async () => {
  await pause(watched.job, { by: 'a person', why: null })
  expect(await watched.minutes(10, () => watched.send('a'))).toEqual([])
})

describe('the alarm for a pipeline that stalls', () => {
  test('fires when no run ever starts while input arrives, and ends with the next commit', async () => {
    watched.runsStart = false
    expect(await watched.minutes(6, () => watched.send('a'))).toEqual(['Stalled'])
    watched.runsStart = true
    await watched.minutes(2)
    expect(watched.on()).toEqual([])
  })

  test('fires when the tick is silent', async () => {
    watched.clock.advance(4 * minuteMs)
    expect(watched.on()).toEqual(['Stalled'])
  })

  test('fires when the topics cannot be read', async () => {
    // A run would try for ever, and does not get anywhere.
    watched.runsStart = false
    const { place } = watched.job
    const source: Place['source'] = async (...given) => {
      const bounds = () => Promise.reject(new PawlError('LOG_UNAVAILABLE', 'no broker answers'))
      return { ...(await place.source(...given)), bounds }
    }
    watched.job = { ...watched.job, place: { ...place, source } }
    expect(await watched.minutes(5)).toEqual(['Stalled'])
  })
})

test('a poison record parks the pipeline, and that alone is told, until a person resumes', async () => {
  await watched.send('poison')
  expect(await watched.minutes(10, () => watched.send('a'))).toEqual(['Parked'])
  expect(watched.on()).toEqual(['Parked'])
})

test('a dead letter fires its alarm, and nothing else does', async () => {
  watched = new Watched(lenient)
  await watched.minutes(3)
  await watched.send('a', 'poison', 'b')
  expect(await watched.minutes(3)).toEqual(['RecordsRejected'])
  expect(watched.memory.sinks.get('dead')!.visible()).toHaveLength(1)
  await watched.minutes(6)
  expect(watched.on()).toEqual([])
})

test('a sink that is gone fires the alarm of its promotion alone, and ends it by coming back', async () => {
  const sink = watched.memory.sinks.get('copies')!
  await watched.minutes(2)
  sink.down = true
  await watched.send('a')
  expect(await watched.minutes(4)).toEqual([])
  expect(await watched.minutes(10, () => watched.send('b'))).toEqual(['PromotionStuck'])
  sink.down = false
  await watched.minutes(8)
  expect(watched.on()).toEqual([])
})

test('a trigger that fails fires its alarm', async () => {
  const { place } = watched.job
  const ledger = { ...place.ledger, ring: () => Promise.reject(new Error('access denied')) }
  watched.job = { ...watched.job, place: { ...place, ledger } }
  await watched.send('a')
  expect(await watched.minutes(1)).toEqual(['TriggerFails'])
  expect(await watched.minutes(6)).toEqual(['Stalled', 'TriggerFails'])
})

test('a run that dies while it holds the pipeline fires its alarm', async () => {
  const head = await watched.memory.ledger.read('word-count')
  const held = { ...head!, revision: head!.revision + 1, run: { ...head!.run, open: true, place: 'arn:dead' } }
  await watched.memory.ledger.swap(head!.revision, held)
  await wake(watched.job, { wake: 'death', place: 'arn:somebody-else' })
  expect(await watched.minutes(1)).toEqual([])
  const again = (await watched.memory.ledger.read('word-count'))!
  await watched.memory.ledger.swap(again.revision, {
    ...held,
    revision: again.revision + 1,
    generation: again.generation,
  })
  await wake(watched.job, { wake: 'death', place: 'arn:dead' })
  expect(await watched.minutes(1)).toEqual(['RunsDied'])
})

test('calls that are throttled fire their alarm when they are many', async () => {
  const calls = { 'dynamodb:PutItem': 4 }
  watched.usage = () => ({ calls, readUnits: 0, writeUnits: 4, throttles: 0 })
  expect(await watched.minutes(2, () => watched.send('a'))).toEqual([])
  watched.usage = () => ({ calls, readUnits: 0, writeUnits: 4, throttles: 2 })
  expect(await watched.minutes(2, () => watched.send('a'))).toEqual(['CallsThrottled'])
})
