/**
 * Decide: one pure function from facts to what comes next. Start, retry, crash and takeover are one code path.
 *
 * Reads:  facts. Writes: nothing.
 * Safe to repeat because: the same facts give the same decision, and every act that follows is conditional.
 */
import type { Head } from '../model/head.ts'
import { limits } from '../model/limits.ts'
import type { RunKey } from '../model/steps.ts'
import type { Facts } from './facts.ts'

/** What a run does next; each variant carries the head on which it was decided. */
export type Decision =
  /** The pipeline has no head: make its genesis. */
  | { readonly decision: 'create' }
  /** Become the holder: a new generation. */
  | { readonly decision: 'claim'; readonly head: Head; readonly reason: 'closed' | 'gone' | 'expired' }
  /** Another run holds the pipeline: watch its head until it moves or its lease is over. */
  | { readonly decision: 'watch'; readonly head: Head; readonly waitMs: number }
  /** Nothing for this run to do, ever. */
  | { readonly decision: 'retire'; readonly reason: string }
  /** This run closed itself to hand over: make sure that the next one starts. */
  | { readonly decision: 'start-next'; readonly head: Head }
  /** This run's own attempt was left open by a step that died. */
  | { readonly decision: 'clear'; readonly head: Head }
  | { readonly decision: 'unpark'; readonly head: Head }
  /** Close the run; something else will wake the pipeline. */
  | { readonly decision: 'rest'; readonly head: Head; readonly reason: string; readonly code: string | null }
  | { readonly decision: 'promote'; readonly head: Head; readonly epoch: number }
  | { readonly decision: 'hand-over'; readonly head: Head }
  | {
      readonly decision: 'register'
      readonly head: Head
      readonly missing: readonly { readonly sink: string; readonly lane: number }[]
    }
  | { readonly decision: 'wait'; readonly head: Head; readonly waitMs: number }
  /** Look at the logs, and plan if they have anything. */
  | { readonly decision: 'survey'; readonly head: Head }

/** Left of an execution that has watched in vain. */
const watchSpareMs = 15_000

export function decide(facts: Facts): Decision {
  const { head, run } = facts
  if (head === null) return { decision: 'create' }
  if (head.run.id === run.id) return head.run.open ? decideAsHolder(facts, head) : decideAsClosed(facts, head)
  if (head.run.sequence >= run.sequence) return { decision: 'retire', reason: `run ${head.run.sequence} came first` }
  if (!head.run.open) return { decision: 'claim', head, reason: 'closed' }
  if (facts.holderGone) return { decision: 'claim', head, reason: 'gone' }
  if (facts.unchangedMs >= head.run.leaseMs) return { decision: 'claim', head, reason: 'expired' }
  if (eventsOf(run) >= limits.runEventsMax || isEnding(facts))
    return { decision: 'retire', reason: 'this run has watched for long enough' }
  // A step may not sleep longer than it may take: with a short lease that is not long.
  const pauseMs = Math.min(5000, Math.floor(Math.min(head.run.leaseMs, facts.settings.leaseMs) / 8))
  return { decision: 'watch', head, waitMs: Math.min(head.run.leaseMs - facts.unchangedMs, pauseMs) }
}

/** An execution may have so many events, whether they go into epochs, failures or waiting, and so much time. */
function isSpent({ run, settings, nowMs }: Facts, head: Head): boolean {
  const { runEpochsMax, runMsMax } = settings
  if (runMsMax !== null && nowMs - run.startedAtMs >= runMsMax) return true
  return head.run.epochs >= runEpochsMax || eventsOf(run) >= limits.runEventsMax
}

/** Whoever only watches needs no room for an epoch: a claim hands over at once. */
function isEnding({ run, settings, nowMs }: Facts): boolean {
  return settings.runMsMax !== null && nowMs - run.startedAtMs >= limits.expressMs - watchSpareMs
}

function eventsOf(run: RunKey): number {
  return run.events ?? 0
}

function decideAsClosed(facts: Facts, head: Head): Decision {
  if (isSpent(facts, head)) return { decision: 'start-next', head }
  return { decision: 'retire', reason: 'this run is closed' }
}

function decideAsHolder(facts: Facts, head: Head): Decision {
  const { nowMs } = facts
  if (head.open !== null) return { decision: 'clear', head }
  if (head.parked !== null && mayUnpark(facts, head)) return { decision: 'unpark', head }
  if (head.parked !== null && (head.parked.retryAtMs === null || head.parked.retryAtMs > nowMs)) {
    const waitMs = (head.parked.retryAtMs ?? Number.POSITIVE_INFINITY) - nowMs
    // Short pauses are waited for in the run; it rests for long ones.
    if (waitMs <= head.run.leaseMs / 8 && !facts.stopping) return { decision: 'wait', head, waitMs }
    return { decision: 'rest', head, reason: head.parked.message, code: head.parked.code }
  }
  if (head.committed.epoch > head.promotedThrough) return { decision: 'promote', head, epoch: head.promotedThrough + 1 }
  if (isPaused(head)) return { decision: 'rest', head, reason: `paused${reasonOf(head)}`, code: null }
  if (facts.stopping) return { decision: 'rest', head, reason: 'stopped', code: null }
  if (isSpent(facts, head)) return { decision: 'hand-over', head }
  const missing = missingLanes(facts, head)
  if (missing.length > 0) return { decision: 'register', head, missing }
  const waitMs = dueAtMs(facts, head, facts.run.behind) - nowMs
  if (waitMs > 0) return { decision: 'wait', head, waitMs: Math.min(waitMs, Math.floor(head.run.leaseMs / 8)) }
  return { decision: 'survey', head }
}

/** A person wants no further epoch; while a drain has input left, it goes on. */
export function isPaused({ paused = null }: Head): boolean {
  return paused !== null && paused.drain === null
}

function reasonOf({ paused }: Head): string {
  return paused?.why ? `: ${paused.why}` : ''
}

/** Another build, or a person who asked for it after the pipeline had parked. */
function mayUnpark(facts: Facts, head: Head): boolean {
  if (head.parked === null || head.parked.kind !== 'failure') return false
  return head.parked.build !== facts.build || (facts.run.resume && head.parked.sinceMs <= facts.run.startedAtMs)
}

function missingLanes(facts: Facts, head: Head): { sink: string; lane: number }[] {
  const known = new Set(head.lanes.map((lane) => `${lane.sink}/${lane.lane}`))
  return facts.sinks.flatMap(({ sink, lanes }) =>
    Array.from({ length: lanes }, (_, lane) => ({ sink, lane })).filter(
      (lane) => !known.has(`${lane.sink}/${lane.lane}`),
    ),
  )
}

/**
 * When the next epoch may open: restart delay, checkpoint interval and minimum pause. The interval is for input that
 * trickles in; what one epoch could not take need not wait for it, nor does a person who hurries or drains.
 */
export function dueAtMs(facts: Pick<Facts, 'settings'>, head: Head, behind = false): number {
  const { intervalMs, minPauseMs } = facts.settings.checkpoint
  const { committed, failures } = head
  if (committed.epoch === 0 || head.hurry || head.paused?.drain) return failures.notBeforeMs
  return Math.max(failures.notBeforeMs, committed.openedAtMs + (behind ? 0 : intervalMs), committed.atMs + minPauseMs)
}
