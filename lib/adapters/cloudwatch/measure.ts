/**
 * What each event measures: from something that happened to values of metrics. Pure.
 *
 * A metric that is split has one entry for each value; the others of an event travel together.
 */
import type { PartitionLag, ProgressEvent } from '../../model/event.ts'
import { storeRequestsOf, type Usage } from '../../model/usage.ts'
import type { MetricName, Split } from './metrics.ts'

/** Values of metrics that share their dimensions. */
export interface Measured {
  /** Value of the split; null for metrics of the whole pipeline. */
  readonly by: { readonly split: Split; readonly value: string } | null
  readonly values: Partial<Readonly<Record<MetricName, number>>>
}
type Event<E extends ProgressEvent['event']> = Extract<ProgressEvent, { readonly event: E }>

const whole = (values: Measured['values']): Measured => ({ by: null, values })
const split = (name: Split, value: string, values: Measured['values']): Measured => {
  return { by: { split: name, value }, values }
}

/** The measurements of one event; none for most. The whole pipeline's come first. */
export function measure(event: ProgressEvent): readonly Measured[] {
  switch (event.event) {
    case 'opened':
      return [whole({ AttemptsOpened: 1 })]
    case 'committed':
      return measureCommit(event)
    case 'finalized':
      return [whole({ EpochsPromoted: 1 })]
    case 'aborted':
      return [whole({ AttemptsAborted: 1 })]
    case 'parked':
      return event.kind === 'failure' ? [whole({ Parked: 1 })] : []
    case 'unconfirmed':
      return [whole({ RowsUnconfirmed: event.rows })]
    case 'died':
      return [whole({ RunsDied: 1 })]
    case 'lag':
      return measureLag(event.lag)
    case 'health':
      return measureHealth(event)
    case 'step':
      return measureStep(event)
    default:
      return []
  }
}

function measureCommit(event: Event<'committed'>): Measured[] {
  const { counts, atMs, openedAtMs, watermarkMs, stateBytes = {} } = event
  return [
    whole({
      EpochsCommitted: 1,
      EpochDuration: atMs - openedAtMs,
      RecordsIn: counts.in,
      RecordsLate: counts.late,
      RecordsRejected: counts.rejected,
      ...(watermarkMs === null ? {} : { WatermarkLagSeconds: (atMs - watermarkMs) / 1000 }),
    }),
    ...Object.entries(counts.out).map(([sink, rows]) => split('sink', sink, { RecordsOut: rows })),
    ...Object.entries(stateBytes).map(([operator, bytes]) => split('operator', operator, { StateBytes: bytes })),
  ]
}

/** By topic: the sum of the records, the age of the oldest. Lag beyond 2^53 is rounded. */
function measureLag(lag: readonly PartitionLag[]): Measured[] {
  return [...new Set(lag.map(({ topic }) => topic))].map((topic) => {
    const own = lag.filter((at) => at.topic === topic)
    const records = Number(own.reduce((sum, at) => sum + BigInt(at.records), 0n))
    const ages = own.flatMap(({ ageMs = null }) => (ageMs === null ? [] : [ageMs]))
    const isKnown = ages.length > 0 || (records === 0 && own.some(({ ageMs }) => ageMs !== undefined))
    return split('topic', topic, {
      LagRecords: records,
      ...(isKnown ? { LagSeconds: Math.max(0, ...ages) / 1000 } : {}),
    })
  })
}

/** What nobody knows has no value: alarms treat its absence as bad news. */
function measureHealth({ lag, stalledMs, unpromotedMs, parked, usage }: Event<'health'>): Measured[] {
  return [
    whole({
      ...(stalledMs === null ? {} : { StalledSeconds: stalledMs / 1000 }),
      UnpromotedSeconds: unpromotedMs / 1000,
      Parked: parked?.kind === 'failure' ? 1 : 0,
      ...(usage === undefined ? {} : withoutZeros(measureUsage(usage))),
    }),
    ...(lag === null ? [] : measureLag(lag)),
  ]
}

/** A pulse at rest has no more values than it must: each is paid for by the hour. */
function withoutZeros(values: Measured['values']): Measured['values'] {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== 0))
}

function measureStep(event: Event<'step'>): Measured[] {
  const { step, ms, next, code, transitions, usage } = event
  const duration = code === null && (step !== 'plan' || next === 'operate') ? durations[step] : undefined
  return [
    whole({
      ...(duration === undefined ? {} : { [duration]: ms }),
      Transitions: transitions,
      ...(usage === undefined ? {} : measureUsage(usage)),
    }),
  ]
}

const durations: Readonly<Record<string, MetricName>> = {
  plan: 'PlanDuration',
  operate: 'OperateDuration',
  precommit: 'PrecommitDuration',
  commit: 'CommitDuration',
  promote: 'PromoteDuration',
  finalize: 'FinalizeDuration',
}

function measureUsage(usage: Usage): Measured['values'] {
  const { writes, reads } = storeRequestsOf(usage)
  const { readUnits, writeUnits, throttles } = usage
  return { StoreWrites: writes, StoreReads: reads, ReadUnits: readUnits, WriteUnits: writeUnits, Throttles: throttles }
}
