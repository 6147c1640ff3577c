/**
 * Commit: one conditional write, and nothing else. THE decision.
 *
 * Reads:  the head, the manifest. Writes: the head and one history item, in one atomic write.
 * Safe to repeat because: the write applies only while generation and open attempt are this run's, the last commit
 * is epoch − 1 and everything before is promoted. A lost answer is read back along the chain: the history item of
 * the epoch tells whose it became, however far the head has moved on.
 */
import { assert } from '../model/assert.ts'
import { PawlError } from '../model/errors.ts'
import type { Head, HistoryItem } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import { rangeSpan } from '../model/offsets.ts'
import type { CommitInput, StepOutput } from '../model/steps.ts'
import { amend, readHead } from './amend.ts'
import { holds, type Job, mustHold, readManifest } from './job.ts'
import { lanesToPromote } from './promote.ts'
import { forgiveFailures } from './restart.ts'

export async function commit(job: Job, input: CommitInput): Promise<StepOutput> {
  const { run, key } = input
  const manifest = await readManifest(job, input.manifest)
  assert(manifest.epoch === key.epoch && manifest.attempt === key.attempt, 'the manifest is of this attempt')
  const nowMs = job.place.clock.nowMs()
  const history: HistoryItem = {
    epoch: key.epoch,
    attempt: key.attempt,
    generation: key.generation,
    manifest: input.manifest,
    atMs: nowMs,
  }
  let attempts = 1
  const change = (head: Head) => {
    attempts = head.failures.count + 1
    return mayCommit(head, input) ? committed(job, head, history, manifest) : null
  }
  const amended = await amend(job, change, { history })
  if (amended.result !== 'applied') await mustBeCommitted(job, input)
  else
    job.place.telemetry.emit({
      event: 'committed',
      pipeline: run.pipeline,
      epoch: key.epoch,
      attempt: key.attempt,
      counts: manifest.counts,
      watermarkMs: manifest.watermarkMs,
      atMs: nowMs,
      openedAtMs: amended.head.committed.openedAtMs,
      attempts,
      ...sizesOf(manifest),
    })
  const head = await readHead(job)
  mustHold(head, run, key.generation)
  return lanesToPromote(job, run, head, key.epoch)
}

/** What a manifest says beyond its counts, for those who watch. */
function sizesOf({ snapshots, lost }: Manifest) {
  const stateBytes: Record<string, number> = {}
  for (const { operator, files } of snapshots)
    stateBytes[operator] = files.reduce((sum, { bytes }) => sum + bytes, stateBytes[operator] ?? 0)
  return { stateBytes, lost: lost.reduce((sum, range) => sum + rangeSpan(range), 0n).toString() }
}

/** All that must hold for the write; each clause alone has corrupted something when it was left out. */
export function mayCommit(head: Head, { run, key }: CommitInput): boolean {
  const mine =
    holds(head, run, key.generation) && head.open?.attempt === key.attempt && head.incarnation === key.incarnation
  return mine && head.committed.epoch === key.epoch - 1 && head.promotedThrough === key.epoch - 1
}

function committed(job: Job, head: Head, history: HistoryItem, { refused }: Manifest): Head {
  const openedAtMs = head.open?.openedAtMs ?? history.atMs
  return {
    ...head,
    open: null,
    committed: {
      epoch: history.epoch,
      attempt: history.attempt,
      manifest: history.manifest,
      openedAtMs,
      atMs: history.atMs,
    },
    failures: forgiveFailures(head.failures, job.compiled.settings.epoch.spanMax),
    parked: null,
    ...(head.hurry?.epoch === history.epoch ? { hurry: null } : {}),
    refusing: refused === undefined ? head.refusing : refused.more,
    unconfirmed: head.unconfirmed && { ...head.unconfirmed, recent: [] },
  }
}

/** The write was refused or its fate is unclear: the chain knows. Throws `FENCED` unless the epoch became ours. */
async function mustBeCommitted(job: Job, input: CommitInput): Promise<void> {
  const item = await job.place.ledger.history(input.run.pipeline, input.key.epoch)
  if (item !== null && item.manifest.sha256 === input.manifest.sha256) return
  const head = await readHead(job)
  mustHold(head, input.run, input.key.generation)
  // Still ours, and neither open nor committed: another step of this run has aborted the attempt.
  throw new PawlError('FENCED', `attempt ${input.key.attempt} of epoch ${input.key.epoch} is not open any more`, {
    attempt: input.key.attempt,
  })
}
