/**
 * What the exhaustive simulation enumerates: small pipelines in every form an epoch can take.
 *
 * `test/simulation/exhaustive.test.ts` runs the short list, with one fault a run; `scripts/soak-simulation.ts` runs all
 * of them, with a second process that dies as well.
 */
import type { Settings } from '../../lib/index.ts'
import type { ExhaustOptions } from '../../lib/testing/index.ts'
import { deadLetters, keyedTwice, merged, passthrough, type Sample, sinkMix, windows, wordCount } from './pipelines.ts'

/** One enumeration. */
export interface ExhaustiveCase {
  readonly name: string
  readonly sample: Sample
  readonly options: ExhaustOptions
  /** Left to the soak. */
  readonly long?: boolean
}

const epochs = (
  spanMax: number,
  fuseSpanMax: number,
  more: Partial<Settings> = {},
): { settings: Partial<Settings> } => ({
  settings: { epoch: { spanMax, fuseSpanMax, fuseMs: 0, convictAfter: 1_000_000 }, ...more },
})

const patient = { intervalMs: 0, minPauseMs: 0, timeoutMs: 600_000, tolerableFailures: 0 }
const fused = 1000
const unfused = 0

const refusing = { id: 'out-0', lanes: 1, kind: 'refusing' } as const
const weak = { id: 'out-1', lanes: 1, kind: 'weak' } as const

/** Every form, the short ones first. */
export const exhaustiveCases: readonly ExhaustiveCase[] = [
  { name: 'fused epochs, two lanes', sample: wordCount(4), options: epochs(2, fused) },
  { name: 'two shards, stage by stage', sample: wordCount(3), options: epochs(2, unfused, { shards: 2 }) },
  { name: 'windows with late output', sample: windows(10), options: epochs(5, fused) },
  { name: 'two sinks and dead letters', sample: deadLetters(6), options: epochs(4, fused) },
  {
    name: 'runs that hand over after each epoch',
    sample: passthrough(3),
    options: epochs(2, fused, { runEpochsMax: 1 }),
  },
  {
    name: 'functions without memory',
    sample: wordCount(2),
    options: { ...epochs(2, unfused, { shards: 2 }), cold: true },
  },
  {
    name: 'slow calls, so that leases are renewed',
    sample: wordCount(3),
    options: { ...epochs(2, fused, { leaseMs: 60_000, checkpoint: patient }), latencyMs: 5000 },
  },
  {
    name: 'offsets beyond 2^53',
    sample: passthrough(2),
    options: { ...epochs(2, fused), baseOffset: 9_007_199_254_740_993n },
  },
  {
    name: 'a sink that refuses rows',
    sample: sinkMix('exactly-once', [refusing], 3),
    options: { ...epochs(2, fused), partitions: 1 },
  },
  {
    name: 'at least once, a sink without a marker',
    sample: sinkMix('at-least-once', [weak], 3),
    options: { ...epochs(2, fused), partitions: 1 },
  },
  {
    name: 'at most once, a sink without a marker, two lanes side by side',
    sample: sinkMix('at-most-once', [{ ...weak, lanes: 2 }], 3),
    options: { ...epochs(3, fused), partitions: 2 },
  },
  {
    name: 'at most once, beside a sink that refuses rows',
    sample: sinkMix('at-most-once', [refusing, { ...weak, lanes: 2 }], 6),
    options: epochs(3, unfused, { shards: 2 }),
    long: true,
  },
  {
    name: 'two sinks and dead letters, two shards',
    sample: deadLetters(9),
    options: epochs(5, unfused, { shards: 2 }),
    long: true,
  },
  { name: 'two sources merged', sample: merged(4), options: epochs(3, fused), long: true },
  { name: 'two key-bys, three shards', sample: keyedTwice(6), options: epochs(3, unfused, { shards: 3 }), long: true },
  { name: 'windows, two shards', sample: windows(16), options: epochs(6, unfused, { shards: 2 }), long: true },
]
