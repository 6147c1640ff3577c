/**
 * What a running pipeline looks like, folded from its events.
 *
 * A pure fold: the same events give the same view. How it is drawn is the business of `print-progress.ts`.
 */
import type { PartitionLag, ProgressEvent } from '../model/event.ts'
import type { Head } from '../model/head.ts'
import type { Counts } from '../model/manifest.ts'

/** A pipeline that runs in this process. */
export interface RunView {
  readonly pipeline: string
  readonly startedAtMs: number
  readonly state: 'starting' | 'running' | 'idle' | 'retrying' | 'standing by' | 'parked' | 'paused' | 'stopping'
  readonly generation: number | null
  /** The attempt that is open. */
  readonly open: { readonly epoch: number; readonly sinceMs: number; readonly span: number } | null
  /** The last epoch that this run committed. */
  readonly committed: CommittedView | null
  readonly promoted: number | null
  /** Sums of this run. */
  readonly counts: Counts
  /** Commits of the last seconds, for the rate. */
  readonly recent: readonly { readonly atMs: number; readonly records: number }[]
  readonly lag: readonly Pick<PartitionLag, 'source' | 'partition' | 'records'>[]
  /** Failed attempts of this run; `last` stays until the view ends. */
  readonly failures: number
  readonly last: { readonly atMs: number; readonly message: string } | null
}

/** One committed epoch. */
export interface CommittedView {
  readonly epoch: number
  readonly atMs: number
  readonly tookMs: number
  readonly counts: Counts
  readonly watermarkMs: number | null
}

/** Over how long the rate is taken. */
const rateMs = 5000

/** The view before the first event. */
export function newView(pipeline: string, startedAtMs: number): RunView {
  return {
    pipeline,
    startedAtMs,
    state: 'starting',
    generation: null,
    open: null,
    committed: null,
    promoted: null,
    counts: { in: 0, out: {}, late: 0, rejected: 0 },
    recent: [],
    lag: [],
    failures: 0,
    last: null,
  }
}

/** The view after one more event. */
export function observe(view: RunView, event: ProgressEvent, nowMs: number): RunView {
  switch (event.event) {
    case 'taken-over':
      return { ...view, state: running(view), generation: event.generation }
    case 'opened':
      return { ...view, state: running(view), open: { epoch: event.epoch, sinceMs: nowMs, span: event.span } }
    case 'committed':
      return committed(view, event)
    case 'finalized':
      return { ...view, promoted: event.epoch }
    case 'aborted': {
      const last = { atMs: nowMs, message: event.message }
      return {
        ...view,
        state: view.state === 'stopping' ? 'stopping' : 'retrying',
        open: null,
        failures: view.failures + 1,
        last,
      }
    }
    case 'parked':
      return { ...view, state: 'parked', open: null, last: { atMs: nowMs, message: event.message } }
    case 'waiting':
      return {
        ...view,
        state: view.state === 'stopping' ? 'stopping' : 'retrying',
        open: null,
        last: { atMs: nowMs, message: event.message },
      }
    case 'health':
      return event.lag === null ? view : { ...view, lag: event.lag }
    case 'lag':
      return { ...view, state: running(view), lag: event.lag }
    case 'created':
    case 'died':
    case 'step':
    case 'promoted':
    case 'healed':
    case 'offsets-unpublished':
    case 'refused':
    case 'unconfirmed':
      return view
    case 'left':
      return view.state === 'running' ? { ...view, state: 'idle' } : view
  }
}

/** The view once the head was looked at: another run may hold the pipeline. */
export function observeHead(view: RunView, head: Head | null, here: string): RunView {
  if (head === null || view.state === 'stopping') return view
  if (head.run.open && head.run.place !== here) return { ...view, state: 'standing by', open: null }
  if (head.paused && !head.paused.drain && !head.run.open) return { ...view, state: 'paused', open: null }
  return view.state === 'standing by' || view.state === 'paused' ? { ...view, state: 'starting' } : view
}

/** Records a second over the last seconds. */
export function rateOf(view: RunView, nowMs: number): number {
  const spanMs = Math.min(rateMs, Math.max(1000, nowMs - view.startedAtMs))
  const records = view.recent.reduce((sum, commit) => (nowMs - commit.atMs <= spanMs ? sum + commit.records : sum), 0)
  return (records * 1000) / spanMs
}

/** Records that wait, over all partitions. */
export function lagOf({ lag }: RunView): bigint {
  return lag.reduce((sum, { records }) => sum + BigInt(records), 0n)
}

function running(view: RunView): RunView['state'] {
  return view.state === 'stopping' ? 'stopping' : 'running'
}

function committed(view: RunView, event: Extract<ProgressEvent, { event: 'committed' }>): RunView {
  const { epoch, atMs, openedAtMs, counts, watermarkMs } = event
  const recent = view.recent.filter((commit) => atMs - commit.atMs <= rateMs)
  return {
    ...view,
    state: running(view),
    open: null,
    committed: { epoch, atMs, tookMs: atMs - openedAtMs, counts, watermarkMs },
    counts: sumOf(view.counts, counts),
    recent: [...recent, { atMs, records: counts.in }],
  }
}

function sumOf(a: Counts, b: Counts): Counts {
  const out = { ...a.out }
  for (const [sink, rows] of Object.entries(b.out)) out[sink] = (out[sink] ?? 0) + rows
  return { in: a.in + b.in, out, late: a.late + b.late, rejected: a.rejected + b.rejected }
}
