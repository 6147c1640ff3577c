/**
 * Abort: first makes the commit impossible, then discards.
 *
 * Reads:  the head, what the attempt left. Writes: the head: open cleared, one more failure; then deletes.
 * Safe to repeat because: only the write that moved `open` from this attempt to none entitles to discard; a refused,
 * fenced or unclear abort deletes nothing. After a commit there is no abort: the pipeline goes on to promotion.
 */
import type { FailureReason, Head } from '../model/head.ts'
import { attemptPrefix } from '../model/names.ts'
import { resultVersion, type TaskResult } from '../model/results.ts'
import type { AbortInput, StepOutput } from '../model/steps.ts'
import { amend } from './amend.ts'
import { type Cause, causeOf } from './cause.ts'
import { holds, type Job, openSink } from './job.ts'
import { left } from './leave.ts'
import { abortEvents, spend } from './machine.ts'
import { judgeFailure } from './restart.ts'

export async function abort(job: Job, input: AbortInput): Promise<StepOutput> {
  const run = spend(input.run, abortEvents)
  const cause = causeOf(input.error)
  const nowMs = job.place.clock.nowMs()
  let attempt: string | null = null
  const amended = await amend(job, (head) => {
    if (!holds(head, run, input.key?.generation ?? head.generation)) return null
    // A step of this attempt that comes late: another has closed it, and the next one may be open already.
    if (input.key && head.open?.attempt !== input.key.attempt) return null
    attempt = head.open?.attempt ?? null
    return failed(job, head, cause, nowMs)
  })
  if (!holds(amended.head, run)) return left(job, run, 'another run holds the pipeline', 'FENCED')
  if (amended.result !== 'applied') return { next: 'plan', run }
  report(job, amended.head, cause, attempt)
  if (attempt !== null) await discard(job, amended.head, attempt)
  const waitMs = amended.head.failures.notBeforeMs - nowMs
  if (amended.head.parked !== null || waitMs <= 0) return { next: 'plan', run }
  return {
    next: 'wait',
    run,
    waitMs: Math.min(waitMs, Math.floor(amended.head.run.leaseMs / 8)),
    waitSeconds: Math.ceil(waitMs / 1000),
    watch: null,
  }
}

function failed(job: Job, head: Head, cause: Cause, nowMs: number): Head {
  const { code, message, record, operator } = cause
  const reason: FailureReason = { code, message, attempt: head.open?.attempt ?? '', atMs: nowMs, record, operator }
  // A build that changed in mid-epoch is nobody's failure.
  if (code === 'BUILD_CHANGED') return { ...head, open: null }
  const verdict = judgeFailure(head.failures, reason, head.open, job.compiled.settings)
  return {
    ...head,
    open: null,
    failures: verdict.failures,
    parked: verdict.parked && { ...verdict.parked, build: job.compiled.build },
  }
}

function report(job: Job, head: Head, cause: Cause, attempt: string | null): void {
  const { pipeline, parked } = head
  const { code, message } = cause
  job.place.telemetry.emit({
    event: 'aborted',
    pipeline,
    epoch: head.committed.epoch + 1,
    attempt: attempt ?? '',
    code,
    message,
  })
  if (parked !== null)
    job.place.telemetry.emit({
      event: 'parked',
      pipeline,
      kind: parked.kind,
      code: parked.code,
      message: parked.message,
    })
}

/** Drops what the attempt staged in sinks, then its objects. What a late step still writes is left to `collect`. */
async function discard(job: Job, head: Head, attempt: string): Promise<void> {
  const { store } = job.place
  const names: string[] = []
  for await (const { name } of store.list(attemptPrefix(head.pipeline, head.incarnation, attempt))) names.push(name)
  for (const name of names) if (name.endsWith('/result')) await discardStaged(job, head, await store.read(name))
  await store.delete(names)
}

async function discardStaged(job: Job, head: Head, bytes: Buffer | null): Promise<void> {
  const result = bytes === null ? null : (JSON.parse(bytes.toString()) as TaskResult)
  if (result === null || result.version !== resultVersion) return
  for (const { sink, parts } of result.staged) {
    if (sink in job.compiled.sinks) await (await openSink(job, sink, head.incarnation)).discard?.(parts)
  }
}
