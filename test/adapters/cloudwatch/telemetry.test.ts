import { expect, test } from 'vitest'
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

const events: ProgressEvent[] = [
  { event: 'created', pipeline: 'p', incarnation: 'i' },
  { event: 'taken-over', pipeline: 'p', generation: 3, from: 'elsewhere' },
  { event: 'opened', pipeline: 'p', epoch: 4, attempt: 'a', span: 10, tasks: 1 },
  {
    event: 'committed',
    pipeline: 'p',
    epoch: 4,
    attempt: 'a',
    counts: { in: 10, out: { one: 7, two: 0 }, late: 2, rejected: 1 },
    watermarkMs: null,
    atMs: 1_500,
    openedAtMs: 1_000,
  },
  { event: 'promoted', pipeline: 'p', epoch: 4, sink: 'one', lane: 0, rows: 7 },
  { event: 'finalized', pipeline: 'p', epoch: 4, atMs: 1_600 },
  { event: 'aborted', pipeline: 'p', epoch: 5, attempt: 'b', code: 'OPERATOR_FAILED', message: 'no' },
  { event: 'parked', pipeline: 'p', kind: 'failure', code: 'OPERATOR_FAILED', message: 'no' },
  { event: 'healed', pipeline: 'p', sink: 'one', lane: 0, fromEpoch: 2, toEpoch: 4 },
  {
    event: 'lag',
    pipeline: 'p',
    lag: [
      { source: 'lines', topic: 'lines', partition: 0, records: '5' },
      { source: 'lines', topic: 'lines', partition: 1, records: '7' },
      { source: 'bids', topic: 'bids', partition: 0, records: '9007199254740993' },
    ],
  },
  { event: 'offsets-unpublished', pipeline: 'p', epoch: 4, source: 'lines', code: 'GROUP_IN_USE', message: 'no' },
  { event: 'left', pipeline: 'p', run: 'r', reason: 'at rest' },
]

function linesOf(event: ProgressEvent): Line[] {
  const lines: string[] = []
  emfTelemetry({ write: (line) => lines.push(line), nowMs: () => 1_234 }).emit(event)
  return lines.map((line) => JSON.parse(line))
}

test.each(events.map((event) => [event.event, event] as const))('%s is whole in each of its lines', (_, event) => {
  const lines = linesOf(event)
  expect(lines.length).toBeGreaterThan(0)
  const { lag: _lag, ...fields } = event as ProgressEvent & { lag?: unknown }
  for (const line of lines) expect(line).toMatchObject(fields)
})

test('every line with metrics is embedded metric format', () => {
  const measured = events.flatMap(linesOf).filter((line) => line._aws !== undefined)
  expect(measured.length).toBeGreaterThan(8)
  for (const line of measured) {
    expect(line._aws.Timestamp).toBe(1_234)
    for (const { Namespace, Dimensions, Metrics } of line._aws.CloudWatchMetrics) {
      expect(Namespace).toBe('Pawl')
      for (const dimension of Dimensions.flat()) {
        expect(['pipeline', 'operator', 'sink', 'topic']).toContain(dimension)
        expect(typeof line[dimension]).toBe('string')
      }
      for (const { Name, Unit } of Metrics) {
        expect(['Count', 'Milliseconds']).toContain(Unit)
        expect(Number.isFinite(line[Name])).toBe(true)
      }
    }
  }
})

test('measures a commit for the pipeline and for each sink', () => {
  const lines = linesOf(events[3]!)
  expect(lines).toHaveLength(3)
  expect(lines[0]).toMatchObject({ EpochsCommitted: 1, EpochDuration: 500, RecordsIn: 10, RecordsLate: 2 })
  expect(lines.slice(1).map(({ sink, RowsCommitted }) => [sink, RowsCommitted])).toEqual([
    ['one', 7],
    ['two', 0],
  ])
})

test('measures lag for the pipeline and for each source', () => {
  const [all, lines, bids] = linesOf(events[9]!)
  expect(all).toMatchObject({ pipeline: 'p', Lag: Number(9_007_199_254_741_005n) })
  expect(lines).toMatchObject({ operator: 'lines', SourceLag: 12, HighestPartitionLag: 7 })
  expect(bids).toMatchObject({ operator: 'bids', lag: [{ records: '9007199254740993' }] })
})
