/**
 * The metrics: every one that a pipeline has, what it counts, and by what it is split.
 *
 * A metric is paid for by the hour in which it has a value, for each value of its dimensions: the table is what a
 * pipeline's metrics cost. The dashboard and the alarms are made of it, and nothing that is not in it is emitted.
 */

/** As CloudWatch knows them. */
export type Unit = 'Count' | 'Milliseconds' | 'Seconds' | 'Bytes'
/** What a metric is split by beside the pipeline. */
export type Split = 'operator' | 'sink' | 'topic'

/** One metric, or one for each value of `by`. */
export interface MetricSpec {
  readonly unit: Unit
  readonly by: Split | null
  /** As a person reads it. */
  readonly says: string
}

const of = (unit: Unit, says: string, by: Split | null = null): MetricSpec => ({ unit, by, says })

/** Every metric, by name. */
export const metrics = {
  EpochsCommitted: of('Count', 'epochs that became true'),
  EpochsPromoted: of('Count', 'epochs that became visible in every sink'),
  AttemptsOpened: of('Count', 'attempts at an epoch'),
  AttemptsAborted: of('Count', 'attempts that failed and were discarded'),
  EpochDuration: of('Milliseconds', 'from the opening of an epoch to its commit'),
  PlanDuration: of('Milliseconds', 'a plan that opened an epoch'),
  OperateDuration: of('Milliseconds', 'one task'),
  PrecommitDuration: of('Milliseconds', 'one precommit'),
  CommitDuration: of('Milliseconds', 'one commit'),
  PromoteDuration: of('Milliseconds', 'one lane'),
  FinalizeDuration: of('Milliseconds', 'one finalize'),
  RecordsIn: of('Count', 'records read by committed epochs'),
  RecordsOut: of('Count', 'rows committed', 'sink'),
  RecordsLate: of('Count', 'records behind the watermark'),
  RecordsRejected: of('Count', 'records left out of the result: dead letters, or skipped'),
  RowsUnconfirmed: of('Count', 'rows that at-most-once gave up: they may not be shown'),
  WatermarkLagSeconds: of('Seconds', 'how far event time is behind the clock at a commit'),
  LagRecords: of('Count', 'records that no epoch has committed', 'topic'),
  LagSeconds: of('Seconds', 'age of the oldest of them', 'topic'),
  StateBytes: of('Bytes', 'snapshot files of an operator', 'operator'),
  StalledSeconds: of('Seconds', 'how long records have waited without a commit'),
  UnpromotedSeconds: of('Seconds', 'how long a committed epoch has not been visible'),
  RunsDied: of('Count', 'runs that ended other than by their own will'),
  Parked: of('Count', '1 while the pipeline waits for a person'),
  StoreWrites: of('Count', 'PUT, POST and LIST requests of S3'),
  StoreReads: of('Count', 'GET and HEAD requests of S3'),
  ReadUnits: of('Count', 'read units of DynamoDB'),
  WriteUnits: of('Count', 'write units of DynamoDB'),
  Transitions: of('Count', 'state transitions of Step Functions'),
  Throttles: of('Count', 'calls that AWS answered with "not now"'),
} as const satisfies Readonly<Record<string, MetricSpec>>

/** Name of a metric. */
export type MetricName = keyof typeof metrics

/** How many values each split has. */
export type Splits = Readonly<Record<Split, number>>

/** Metrics that a pipeline has at most, whatever it does: what CloudWatch bills. */
export function metricCount(splits: Splits): number {
  return Object.values<MetricSpec>(metrics).reduce((sum, { by }) => sum + (by === null ? 1 : splits[by]), 0)
}
