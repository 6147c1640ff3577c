/**
 * Split: whether the next epoch is split over the shards, by what epochs have cost.
 *
 * A shuffle encodes each record, stores it and reads it back; where functions are cheap that costs more than the other
 * shards bring. So it is measured: the first large epoch is bounded and fused, and from then on a large one is split
 * only when one task would take too long and the shards are faster, or not tried yet. What is learnt travels in the
 * manifest and is forgotten with the build. Results never depend on it: a fused epoch and a split one compute the same.
 */
import type { Manifest, Pace, Plan } from '../model/manifest.ts'
import { rangeSpan } from '../model/offsets.ts'
import type { TaskResult } from '../model/results.ts'
import type { Compiled } from '../stream/compiled.ts'

/** Shards are not tried for records that cost less than it takes to hand one over. */
const splitUsMin = 10

const unknown: Pace = { fusedUs: null, splitUs: null }

/** How many offsets the next epoch may span: few, while nobody knows what they cost. */
export function spanBound({ settings, topology, build }: Compiled, parent: Manifest): number {
  const { spanMax, fuseSpanMax } = settings.epoch
  const asks = settings.shards > 1 && topology.stages > 1 && isLearning(settings)
  return asks && paceOf(parent, build).fusedUs === null ? Math.min(spanMax, fuseSpanMax) : spanMax
}

/** Whether one task runs all stages of an epoch of this span. */
export function isFused({ settings, topology, build }: Compiled, parent: Manifest, span: number): boolean {
  const { fuseSpanMax, fuseMs } = settings.epoch
  if (settings.shards === 1 || (span <= fuseSpanMax && fuseSpanMax > 0)) return true
  // Without a shuffle nothing is lost by splitting.
  if (topology.stages === 1 || !isLearning(settings)) return false
  const { fusedUs, splitUs } = paceOf(parent, build)
  if (fusedUs === null) return false
  if (fusedUs < splitUsMin || (fusedUs * span) / 1000 <= fuseMs) return true
  return splitUs !== null && splitUs >= fusedUs
}

function isLearning({ epoch }: Compiled['settings']): boolean {
  return epoch.fuseMs > 0 && epoch.fuseSpanMax > 0
}

/** The pace for the manifest of the epoch that was planned so. */
export function paceAfter(
  { settings }: Compiled,
  plan: Plan,
  parent: Manifest,
  results: readonly TaskResult[],
): { readonly pace?: Pace } {
  const before = paceOf(parent, plan.build)
  const span = plan.ranges.reduce((sum, range) => sum + Number(rangeSpan(range)), 0)
  const stageMs = plan.stageTasks.map((_, stage) =>
    Math.max(...results.filter((result) => result.stage === stage).map(({ tookMs = Number.NaN }) => tookMs)),
  )
  const us = (stageMs.reduce((sum, ms) => sum + ms, 0) * 1000) / span
  // What a small epoch costs says little about its records.
  const known = span < settings.epoch.fuseSpanMax / 2 || Number.isNaN(us) ? before : learnt(before, us, plan.fused)
  return known.fusedUs === null && known.splitUs === null ? {} : { pace: known }
}

function learnt(before: Pace, us: number, fused: boolean): Pace {
  return fused
    ? { ...before, fusedUs: smoothed(before.fusedUs, us) }
    : { ...before, splitUs: smoothed(before.splitUs, us) }
}

/** Half of it is the newest: a first epoch is slow while code is compiled and state is loaded. */
function smoothed(before: number | null, us: number): number {
  return Math.round(10 * (before === null ? us : (before + us) / 2)) / 10
}

function paceOf(parent: Manifest, build: string): Pace {
  return parent.build === build ? (parent.pace ?? unknown) : unknown
}
