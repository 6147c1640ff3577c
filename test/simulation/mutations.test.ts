import { describe, expect, test } from 'vitest'
import type { Settings } from '../../lib/index.ts'
import { json, nullable, pipeline, text, topic } from '../../lib/index.ts'
import type { Sabotage } from '../../lib/testing/actor.ts'
import { type ExhaustOptions, everyFault, exhaust } from '../../lib/testing/index.ts'
import { passthrough, type Sample, windows, wordCount } from './pipelines.ts'
import * as sinks from './sabotaged-sinks.ts'
import * as broken from './sabotages.ts'
import { brokenIn } from './stage.ts'

/** One rule left out, and what the simulation must say of it; null: nothing, for the rule has a second lock. */
interface Proof {
  readonly name: string
  readonly sabotage: Sabotage
  readonly breaks: RegExp | null
  readonly sample?: Sample
  readonly options?: Partial<ExhaustOptions>
}

const span = (spanMax: number, more: Partial<Settings> = {}): Partial<Settings> => ({
  epoch: { spanMax, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 1_000_000 },
  ...more,
})
const twoShards = span(2, { epoch: { spanMax: 2, fuseSpanMax: 0, fuseMs: 0, convictAfter: 1_000_000 }, shards: 2 })
const patient = { intervalMs: 0, minPauseMs: 0, timeoutMs: 600_000, tolerableFailures: 0 }
const renewing: Partial<ExhaustOptions> = {
  settings: span(2, { leaseMs: 60_000, checkpoint: patient }),
  latencyMs: 8000,
}
const grouped: Sample = {
  pipeline: pipeline('grouped')
    .from(topic('lines', { key: nullable(text()), value: text(), group: 'monitoring' }))
    .keyBy('word', (word) => word)
    .count('count')
    .to('counts', topic('counts', { key: text(), value: json<number>() })),
  input: { lines: ['a', 'b', 'a', 'b'] },
}
const bigOffsets: Partial<ExhaustOptions> = { baseOffset: 9_007_199_254_740_993n }
/** Those by which the breaches of other rules are found; enough where nothing must be. */
const tellingFaults = everyFault.filter(({ fault }) =>
  ['crash-after', 'reply-lost', 'zombie', 'timeout'].includes(fault),
)
const gone = /OBJECT_MISSING|is committed with its object|is in the store/

const proofs: readonly (readonly [invariant: number, proofs: readonly Proof[]])[] = [
  [
    1,
    [
      {
        name: 'a commit without the attempt condition',
        sabotage: broken.commitWithoutAttempt,
        breaks: /by the attempt that is open/,
      },
      {
        name: 'a commit without any condition',
        sabotage: broken.commitIf(() => true),
        breaks: /by the attempt that is open/,
      },
      { name: 'a promotion before the commit', sabotage: broken.promoteBeforeCommit, breaks: /is not committed/ },
      {
        name: 'an epoch that opens over an unpromoted one',
        sabotage: broken.overlappingEpochs,
        breaks: /opens when all before/,
      },
      {
        name: 'no breach in a commit without the generation: the attempt is a second lock',
        sabotage: broken.commitWithoutGeneration,
        breaks: null,
      },
    ],
  ],
  [
    2,
    [
      {
        name: 'a renewal that puts a stale head back whole',
        sabotage: broken.staleRenewal,
        breaks: /stays registered|does not fall|does not change/,
        options: renewing,
      },
    ],
  ],
  [
    3,
    [
      {
        name: 'offsets that are read back from the consumer group',
        sabotage: broken.offsetsFromGroup,
        breaks: /continues lines/,
        sample: grouped,
      },
      {
        name: 'case 47: a watermark that is not restored',
        sabotage: broken.watermarkForgotten,
        breaks: /watermark does not fall/,
        sample: windows(10),
        options: { settings: span(3) },
      },
      {
        name: 'case 15: state that is not restored with the offsets',
        sabotage: broken.stateApart,
        breaks: /once and whole/,
      },
    ],
  ],
  [
    4,
    [
      {
        name: 'ids that each process counts for itself',
        sabotage: broken.countedIds,
        breaks: /written by another invocation/,
      },
      {
        name: 'one name for the invocations of all tasks',
        sabotage: broken.sharedInvocations,
        breaks: /written by another invocation/,
        options: { settings: twoShards },
      },
      {
        name: 'no breach when the repeats of one deterministic task share a name',
        sabotage: broken.sharedInvocations,
        breaks: null,
      },
    ],
  ],
  [
    5,
    [
      {
        name: 'an unclear answer that is taken for a good one',
        sabotage: broken.unknownIsSuccess,
        breaks: /HISTORY_MISSING|reports corruption/,
      },
      {
        name: 'a fenced run that discards after a look at the head alone',
        sabotage: broken.discardByHead,
        breaks: gone,
      },
      {
        name: 'no breach when a fenced run discards after a look along the chain',
        sabotage: broken.discardByChain,
        breaks: null,
      },
    ],
  ],
  [
    6,
    [
      {
        name: 'a marker that is tested outside the transaction',
        sabotage: sinks.sinkOf('marker-outside'),
        breaks: /once and whole/,
      },
      {
        name: 'rows in one transaction, the marker in the next',
        sabotage: sinks.sinkOf('rows-then-marker'),
        breaks: /once and whole/,
      },
      { name: 'no marker at all', sabotage: sinks.sinkOf('no-marker'), breaks: /is finalized when lane/ },
      {
        name: 'a marker that must be of the epoch right before: it parks for no reason',
        sabotage: sinks.prevIsLastEpoch,
        breaks: /all input becomes visible/,
        sample: wordCount(4),
      },
      {
        name: 'no breach in skipping whatever is at or below the marker, as long as no sink is restored',
        sabotage: sinks.sinkOf('marker-ge'),
        breaks: null,
      },
    ],
  ],
  [
    8,
    [
      { name: 'an abort that deletes before it writes the register', sabotage: broken.abortDeletesFirst, breaks: gone },
      { name: 'an abort that deletes and writes no register', sabotage: broken.abortWithoutRegister, breaks: gone },
      { name: 'a refused abort that deletes', sabotage: broken.refusedAbortDeletes, breaks: gone },
      {
        name: 'a finalize that ignores that promotion failed',
        sabotage: broken.finalizeWithoutPromotion,
        breaks: /is finalized when lane/,
      },
      {
        name: 'a takeover that leaves the attempt open',
        sabotage: broken.takeover(({ open }) => ({ open })),
        breaks: /takeover clears/,
      },
      {
        name: 'a takeover that counts no failure',
        sabotage: broken.takeover(({ failures }) => ({ failures })),
        breaks: /takeover counts/,
      },
    ],
  ],
  [
    10,
    [
      { name: 'a collection that reads the head before it lists', sabotage: broken.collectHeadFirst, breaks: gone },
      { name: 'a collection to which the open attempt is no root', sabotage: broken.collectOpenAttempt, breaks: gone },
      { name: 'a collection by age', sabotage: broken.collectByAge, breaks: gone },
      { name: 'no breach in a collection after every epoch', sabotage: broken.collectRightly, breaks: null },
    ],
  ],
  [
    12,
    [
      {
        name: 'a sink that keeps its limits to itself',
        sabotage: sinks.narrow(2, false),
        breaks: /all input becomes visible/,
        sample: wordCount(4, 1),
        options: { settings: span(4) },
      },
      {
        name: 'no breach in a narrow sink that says so: epochs are halved',
        sabotage: sinks.narrow(4, true),
        breaks: null,
        sample: wordCount(3, 1),
        options: { settings: span(3) },
      },
    ],
  ],
  [
    14,
    [
      {
        name: 'offsets that pass through numbers',
        sabotage: broken.roundedOffsets,
        breaks: /LOG_SHRUNK|continues/,
        sample: passthrough(3),
        options: bigOffsets,
      },
      {
        name: 'a tombstone that becomes an empty value',
        sabotage: sinks.nullIsEmpty,
        breaks: /once and whole/,
        sample: passthrough(6),
      },
    ],
  ],
]

describe.each(proofs)('invariant %i: the simulation catches', (_, list) => {
  test.each(list)(
    '$name',
    async ({ sabotage, sample = wordCount(3), options, breaks }) => {
      const faults = breaks === null ? tellingFaults : everyFault
      const all = { input: sample.input, settings: span(2), rings: 8, sabotage, faults, ...options }
      const invariant = await brokenIn(() => exhaust(sample.pipeline, all))
      if (breaks === null) expect(invariant).toBeNull()
      else expect(invariant).toMatch(breaks)
    },
    240_000,
  )
})
