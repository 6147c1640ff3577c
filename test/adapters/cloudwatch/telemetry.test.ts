import { expect, test } from 'vitest'
import { type MetricName, metricCount, metrics } from '../../../lib/adapters/cloudwatch/metrics.ts'
import { emfTelemetry } from '../../../lib/adapters/cloudwatch/telemetry.ts'
import type { ProgressEvent } from '../../../lib/model/event.ts'

interface Emf {
  readonly _aws: {
    readonly Timestamp: number
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string
      readonly Dimensions: readonly (readonly string[])[]
      readonly Metrics: readonly { readonly Name: string; readonly Unit: string }[]
    }[]
  }
}
type Line = Emf & Readonly<Record<string, unknown>>

const usage = { calls: { 's3:PutObject': 3, 's3:GetObject': 2 }, readUnits: 4, writeUnits: 5.5, throttles: 1 }
const origin = { step: 'commit', run: 'r', epoch: 4, attempt: 'a', stage: null, task: null }
const ended = { next: 'promote', sink: null, lane: null, code: null, message: null, transitions: 2 }

/** By kind of event, so that none is forgotten. */
const eventsByKind: { readonly [E in ProgressEvent['event']]: Extract<ProgressEvent, { event: E }> } = {
  created: { event: 'created', pipeline: 'p', incarnation: 'i' },
  'taken-over': { event: 'taken-over', pipeline: 'p', generation: 3, from: 'elsewhere' },
  opened: { event: 'opened', pipeline: 'p', epoch: 4, attempt: 'a', span: 10, tasks: 1 },
  committed: {
    event: 'committed',
    pipeline: 'p',
    ...origin,
    epoch: 4,
    attempt: 'a',
    counts: { in: 10, out: { one: 7, two: 0 }, late: 2, rejected: 1 },
    watermarkMs: 500,
    atMs: 1_500,
    openedAtMs: 1_000,
    attempts: 2,
    stateBytes: { count: 99 },
    lost: '0',
  },
  promoted: { event: 'promoted', pipeline: 'p', epoch: 4, sink: 'one', lane: 0, rows: 7 },
  finalized: { event: 'finalized', pipeline: 'p', epoch: 4, atMs: 1_600 },
  aborted: { event: 'aborted', pipeline: 'p', epoch: 5, attempt: 'b', code: 'OPERATOR_FAILED', message: 'no' },
  parked: { event: 'parked', pipeline: 'p', kind: 'failure', code: 'OPERATOR_FAILED', message: 'no' },
  healed: { event: 'healed', pipeline: 'p', sink: 'one', lane: 0, fromEpoch: 2, toEpoch: 4 },
  unconfirmed: { event: 'unconfirmed', pipeline: 'p', epoch: 4, sink: 'one', lane: 0, rows: 7, code: 'NO' },
  refused: { event: 'refused', pipeline: 'p', epoch: 4, sink: 'one', lane: 0 },
  lag: {
    event: 'lag',
    pipeline: 'p',
    lag: [
      { source: 'lines', topic: 'lines', partition: 0, records: '5' },
      { source: 'lines', topic: 'lines', partition: 1, records: '7' },
      { source: 'bids', topic: 'auction', partition: 0, records: '9007199254740993' },
    ],
  },
  health: {
    event: 'health',
    pipeline: 'p',
    promotedThrough: 3,
    lag: [
      { source: 'lines', topic: 'lines', partition: 0, records: '5', ageMs: 9000 },
      { source: 'lines', topic: 'lines', partition: 1, records: '0', ageMs: null },
      { source: 'bids', topic: 'auction', partition: 0, records: '1', ageMs: 3000 },
    ],
    stalledMs: 4000,
    unpromotedMs: 0,
    parked: { kind: 'failure', code: 'OPERATOR_FAILED', message: 'no' },
    usage: { calls: { 's3:GetObject': 1 }, readUnits: 1, writeUnits: 0, throttles: 0 },
  },
  step: { event: 'step', pipeline: 'p', ...origin, ...ended, step: 'commit', ms: 12, usage },
  'offsets-unpublished': {
    event: 'offsets-unpublished',
    pipeline: 'p',
    epoch: 4,
    source: 'lines',
    code: 'GROUP_IN_USE',
    message: 'no',
  },
  waiting: { event: 'waiting', pipeline: 'p', code: 'DISK_FULL', message: 'no' },
  died: { event: 'died', pipeline: 'p', run: 'r', place: 'elsewhere' },
  left: { event: 'left', pipeline: 'p', run: 'r', reason: 'at rest' },
}
const events = Object.values<ProgressEvent>(eventsByKind)

function linesOf(event: ProgressEvent): Line[] {
  const lines: string[] = []
  emfTelemetry({ write: (line) => lines.push(line), nowMs: () => 1_234 }).emit(event)
  return lines.map((line) => JSON.parse(line))
}

test.each(events.map((event) => [event.event, event] as const))('%s is whole in its first line', (_, event) => {
  const [first, ...others] = linesOf(event)
  expect(first).toMatchObject(event)
  for (const line of others) expect(line).toMatchObject({ event: 'measure', of: event.event })
})

test('every line says pipeline, run, epoch, attempt and task, null where there is none', () => {
  for (const line of events.flatMap(linesOf))
    for (const field of ['pipeline', 'step', 'run', 'epoch', 'attempt', 'stage', 'task'])
      expect(line).toHaveProperty(field)
  expect(linesOf(eventsByKind.committed).every((line) => line.attempt === 'a' && line.run === 'r')).toBe(true)
})

test('every line with metrics is embedded metric format, of metrics that the table knows', () => {
  const measured = events.flatMap(linesOf).filter((line) => line._aws !== undefined)
  expect(measured.length).toBeGreaterThan(8)
  for (const line of measured) {
    expect(line._aws.Timestamp).toBe(1_234)
    for (const { Namespace, Dimensions, Metrics } of line._aws.CloudWatchMetrics) {
      expect(Namespace).toBe('Pawl')
      for (const dimension of Dimensions.flat()) expect(typeof line[dimension]).toBe('string')
      for (const { Name, Unit } of Metrics) {
        const { unit, by } = metrics[Name as MetricName]
        expect([Unit, Dimensions]).toEqual([unit, [by === null ? ['pipeline'] : ['pipeline', by]]])
        expect(Number.isFinite(line[Name])).toBe(true)
      }
    }
  }
})

test('nothing but a number is at the place of a metric', () => {
  for (const line of events.flatMap(linesOf))
    for (const name of Object.keys(metrics)) expect(['number', 'undefined']).toContain(typeof line[name])
})

test('measures a commit for the pipeline, for each sink and for each stateful operator', () => {
  const [whole, ...parts] = linesOf(eventsByKind.committed)
  expect(whole).toMatchObject({ EpochsCommitted: 1, EpochDuration: 500, RecordsIn: 10, WatermarkLagSeconds: 1 })
  expect(whole).toMatchObject({ RecordsLate: 2, RecordsRejected: 1 })
  expect(parts).toMatchObject([
    { sink: 'one', RecordsOut: 7 },
    { sink: 'two', RecordsOut: 0 },
    { operator: 'count', StateBytes: 99 },
  ])
})

test('measures lag by topic, however many sources and partitions it has', () => {
  const [, lines, auction] = linesOf(eventsByKind.lag)
  expect(lines).toMatchObject({ topic: 'lines', LagRecords: 12 })
  expect(auction).toMatchObject({ topic: 'auction', LagRecords: 9_007_199_254_740_992 })
  expect(lines).not.toHaveProperty('LagSeconds')
})

test('the pulse has no value for what nobody knows', () => {
  const { health } = eventsByKind
  const [known, lines, auction] = linesOf(health)
  expect(known).toMatchObject({ StalledSeconds: 4, UnpromotedSeconds: 0, Parked: 1, ReadUnits: 1, StoreReads: 1 })
  expect(known).not.toHaveProperty('WriteUnits')
  expect(lines).toMatchObject({ LagRecords: 5, LagSeconds: 9 })
  expect(auction).toMatchObject({ LagRecords: 1, LagSeconds: 3 })
  const undated = health.lag!.map((at) => ({ ...at, ageMs: null }))
  expect(linesOf({ ...health, lag: undated })[1]).not.toHaveProperty('LagSeconds')
  const unknown = linesOf({ ...health, lag: null, stalledMs: null })
  expect(unknown).toHaveLength(1)
  expect(unknown[0]).not.toHaveProperty('StalledSeconds')
})

test('a promotion that waits for its sink is no park for a person', () => {
  expect(linesOf({ ...eventsByKind.parked, kind: 'promotion' })[0]).not.toHaveProperty('Parked')
})

test('a step is measured by its own name, and not when it failed or opened nothing', () => {
  const { step } = eventsByKind
  const billed = { Transitions: 2, StoreWrites: 3, StoreReads: 2, ReadUnits: 4, WriteUnits: 5.5, Throttles: 1 }
  expect(linesOf(step)).toMatchObject([{ CommitDuration: 12, ...billed }])
  expect(linesOf({ ...step, step: 'plan', next: 'wait' })[0]).not.toHaveProperty('PlanDuration')
  expect(linesOf({ ...step, step: 'plan', next: 'operate' })[0]).toMatchObject({ PlanDuration: 12 })
  expect(linesOf({ ...step, next: null, code: 'FENCED' })[0]).not.toHaveProperty('CommitDuration')
})

test('every metric of the table is emitted by some event, and their number is bounded by the topology', () => {
  const durations = ['plan', 'operate', 'precommit', 'promote', 'finalize'].map((step): ProgressEvent => {
    return { ...eventsByKind.step, step, next: step === 'plan' ? 'operate' : null }
  })
  const lines = [...events, ...durations].flatMap(linesOf)
  const emitted = new Set(
    lines.flatMap(
      ({ _aws }) => _aws?.CloudWatchMetrics.flatMap(({ Metrics }) => Metrics.map(({ Name }) => Name)) ?? [],
    ),
  )
  expect([...emitted].sort()).toEqual(Object.keys(metrics).sort())
  const sets = new Set(
    lines.flatMap((line) =>
      (line._aws?.CloudWatchMetrics ?? []).flatMap(({ Dimensions, Metrics }) =>
        Metrics.map(({ Name }) => [Name, ...Dimensions.flat().map((dimension) => line[dimension])].join('/')),
      ),
    ),
  )
  expect(sets.size).toBe(metricCount({ topic: 2, sink: 2, operator: 1 }))
  expect(metricCount({ topic: 1, sink: 1, operator: 1 })).toBe(30)
})
