/**
 * The protocol, broken on purpose: one sabotage for each way in which somebody might get it wrong.
 *
 * Each is made of the same building blocks as the real steps, with one rule left out. Used by the mutation proofs
 * only.
 */
import { abort } from '../../lib/epoch/abort.ts'
import { amend, readHead } from '../../lib/epoch/amend.ts'
import { collect } from '../../lib/epoch/collect.ts'
import { commit } from '../../lib/epoch/commit.ts'
import type { StepCalls } from '../../lib/epoch/execute.ts'
import { finalize } from '../../lib/epoch/finalize.ts'
import { holds, type Job, openSink, openSource, readManifest } from '../../lib/epoch/job.ts'
import { operate } from '../../lib/epoch/operate.ts'
import { plan } from '../../lib/epoch/plan.ts'
import { precommit } from '../../lib/epoch/precommit.ts'
import { lanesToPromote } from '../../lib/epoch/promote.ts'
import { noFailures } from '../../lib/epoch/restart.ts'
import { PawlError } from '../../lib/index.ts'
import type { Head, HistoryItem } from '../../lib/model/head.ts'
import type { CommitPermit, Manifest } from '../../lib/model/manifest.ts'
import { attemptPrefix, incarnationPrefix } from '../../lib/model/names.ts'
import type {
  AbortInput,
  CommitInput,
  FinalizeInput,
  PlanInput,
  PrecommitInput,
  StepOutput,
  TaskInput,
} from '../../lib/model/steps.ts'
import type { Ledger } from '../../lib/ports/ledger.ts'
import type { Place } from '../../lib/ports/place.ts'
import type { SourceSpec } from '../../lib/ports/spec.ts'
import type { Sabotage } from '../../lib/testing/actor.ts'

const steps = (make: (job: Job) => StepCalls): Sabotage => ({ steps: make })
const inPlace = (change: (place: Place) => Partial<Place>): Sabotage => ({
  place: (place) => ({ ...place, ...change(place) }),
})
const inLedger = (change: (ledger: Ledger, place: Place) => Partial<Ledger>): Sabotage =>
  inPlace((place) => ({ ledger: { ...place.ledger, ...change(place.ledger, place) } }))

/** A commit whose write has other conditions. */
export const commitIf = (may: (head: Head, input: CommitInput) => boolean): Sabotage =>
  steps((job) => ({
    async Commit(input: CommitInput) {
      const { key, run, manifest } = input
      const atMs = job.place.clock.nowMs()
      const history: HistoryItem = {
        epoch: key.epoch,
        attempt: key.attempt,
        generation: key.generation,
        manifest,
        atMs,
      }
      const committed = { ...history, openedAtMs: atMs }
      const write = (head: Head) =>
        may(head, input) ? { ...head, open: null, committed, failures: noFailures, parked: null } : null
      const amended = await amend(job, write, { history })
      const item = await job.place.ledger.history(run.pipeline, key.epoch)
      if (amended.result !== 'applied' && item?.manifest.sha256 !== manifest.sha256) throw new PawlError('FENCED', 'no')
      return lanesToPromote(job, run, await readHead(job), key.epoch)
    },
  }))

const follows = (head: Head, { key }: CommitInput) =>
  head.committed.epoch === key.epoch - 1 && head.promotedThrough === key.epoch - 1

/** Everything but the attempt. */
export const commitWithoutAttempt = commitIf((head, input) => holds(head, input.run) && follows(head, input))
/** Everything but run and generation. */
export const commitWithoutGeneration = commitIf(
  (head, input) => head.open?.attempt === input.key.attempt && follows(head, input),
)

/** Sinks are told first, the ledger afterwards. */
export const promoteBeforeCommit = steps((job) => ({
  async Commit(input: CommitInput) {
    const manifest = await readManifest(job, input.manifest)
    const permit = {
      incarnation: manifest.incarnation,
      epoch: manifest.epoch,
      manifest: input.manifest,
    } as CommitPermit
    for (const committable of manifest.committables) {
      await (await openSink(job, committable.sink, manifest.incarnation)).promote(committable, permit)
    }
    return commit(job, input)
  },
}))

/** The next epoch opens although the last one is not promoted: plan is told that it is. */
export const overlappingEpochs: Sabotage = {
  steps: (job) => ({
    async Plan(input: PlanInput) {
      const { ledger } = job.place
      let promotedThrough = 0
      const lying: Ledger = {
        ...ledger,
        async read(pipeline) {
          const head = await ledger.read(pipeline)
          promotedThrough = head?.promotedThrough ?? 0
          return head && { ...head, promotedThrough: head.committed.epoch }
        },
        swap: (expected, head, options) => ledger.swap(expected, { ...head, promotedThrough }, options),
      }
      return plan({ ...job, place: { ...job.place, ledger: lying } }, input)
    },
  }),
}

/** A renewal puts the whole head back as it was read, on whatever revision there is by then. */
export const staleRenewal = inLedger((ledger) => ({
  async swap(expected, head, options) {
    const before = await ledger.read(head.pipeline)
    const renews = head.run.renewedAtMs !== before?.run.renewedAtMs && head.generation === before?.generation
    if (!renews || options?.history) return ledger.swap(expected, head, options)
    await ledger.wakes(head.pipeline)
    const now = (await ledger.read(head.pipeline))!
    return ledger.swap(now.revision, { ...head, revision: now.revision + 1 })
  },
}))

/** Plans from a last manifest that was tampered with. */
const fromManifest = (change: (job: Job, manifest: Manifest) => Promise<Manifest>): Sabotage =>
  steps((job) => ({
    async Plan(input: PlanInput) {
      const head = await job.place.ledger.read(input.run.pipeline)
      if (head !== null && head.committed.epoch > 0) {
        job.warm.delete(head.committed.manifest.sha256)
        const manifest = await readManifest(job, head.committed.manifest)
        job.warm.set(head.committed.manifest.sha256, await change(job, manifest))
      }
      return plan(job, input)
    },
  }))

/** Where to go on is read back from the group that progress is published to. */
export const offsetsFromGroup = fromManifest(async (job, manifest) => {
  const [[id, spec]] = Object.entries(job.compiled.sources) as [[string, SourceSpec<unknown, unknown>]]
  const group = spec.group ?? ''
  const source = await openSource(job, id, manifest.incarnation)
  const offsets = await source.resolve({ at: 'group', group }).catch(() => new Map<number, bigint>())
  const endOf = (partition: number, end: string) => (offsets.get(partition) ?? BigInt(end)).toString()
  return { ...manifest, progress: manifest.progress.map((at) => ({ ...at, end: endOf(at.partition, at.end) })) }
})

/** Watermarks begin anew in every process. */
export const watermarkForgotten = fromManifest(async (_, manifest) => ({
  ...manifest,
  watermarkMs: null,
  progress: manifest.progress.map((at) => ({ ...at, maxTimestampMs: null })),
}))

/** State begins anew in every process: the snapshots are not in the manifest that offsets are taken from. */
export const stateApart = fromManifest(async (_, manifest) => ({ ...manifest, snapshots: [] }))

/** Ids count from one in each process. */
export const countedIds: Sabotage = inPlace(() => {
  let count = 0
  return { random: { id: () => (++count).toString(16).padStart(32, '0') } }
})

/** Every invocation of a step writes under the same name. */
export const sharedInvocations = steps((job) => {
  const same: Job = { ...job, place: { ...job.place, random: { id: () => 'a'.repeat(32) } } }
  return {
    OperateTask: (input: TaskInput) => operate(same, input),
    Precommit: (input: PrecommitInput) => precommit(same, input),
  }
})

/** An unclear answer is taken for a good one. */
export const unknownIsSuccess = inLedger((ledger) => ({
  swap: (expected, head, options) =>
    ledger.swap(expected, head, options).catch((error: PawlError) => {
      if (error.code === 'UNKNOWN_RESULT') return 'swapped' as const
      throw error
    }),
}))

/** A run that was fenced at its commit cleans up after itself, once `lost` says that its attempt has lost. */
const discardWhenFenced = (lost: (job: Job, input: CommitInput) => Promise<boolean>): Sabotage =>
  steps((job) => ({
    async Commit(input: CommitInput) {
      try {
        return await commit(job, input)
      } catch (error) {
        if ((error as PawlError).code === 'FENCED' && (await lost(job, input))) await discard(job, input.key)
        throw error
      }
    },
  }))

/** It looks at the head alone: another epoch is committed there. */
export const discardByHead = discardWhenFenced(
  async (job, { key }) => (await readHead(job)).committed.attempt !== key.attempt,
)
/** It looks along the chain: its epoch was committed by another attempt. */
export const discardByChain = discardWhenFenced(async (job, { key, run }) => {
  const item = await job.place.ledger.history(run.pipeline, key.epoch)
  return item !== null && item.attempt !== key.attempt
})

async function discard(job: Job, key: { incarnation: string; attempt: string }): Promise<void> {
  const { pipeline } = job.compiled.topology
  const names: string[] = []
  for await (const { name } of job.place.store.list(attemptPrefix(pipeline, key.incarnation, key.attempt)))
    names.push(name)
  await job.place.store.delete(names)
}

/** Abort deletes first and asks the register afterwards. */
export const abortDeletesFirst = steps((job) => ({
  async Abort(input: AbortInput) {
    if (input.key) await discard(job, input.key)
    return abort(job, input)
  },
}))

/** Abort deletes and leaves the register alone. */
export const abortWithoutRegister = steps((job) => ({
  async Abort(input: AbortInput) {
    if (input.key) await discard(job, input.key)
    return { next: 'plan', run: input.run }
  },
}))

/** An abort that was refused deletes all the same. */
export const refusedAbortDeletes = steps((job) => ({
  async Abort(input: AbortInput) {
    const output = await abort(job, input)
    if (input.key) await discard(job, input.key)
    return output
  },
}))

/** Lanes to promote come from the pipeline file. */
export const lanesFromConfiguration = steps((job) => {
  const known = (output: StepOutput) =>
    output.next === 'promote'
      ? { ...output, lanes: output.lanes.filter((lane) => lane.sink in job.compiled.sinks) }
      : output
  return {
    Plan: async (input: PlanInput) => known(await plan(job, input)),
    Commit: async (input: CommitInput) => known(await commit(job, input)),
  }
})

/** Finalize believes that promotion went well. */
export const finalizeWithoutPromotion = steps((job) => ({
  Finalize: (input: FinalizeInput) => finalize(job, { ...input, error: undefined }),
}))

/** Finalize takes whatever is committed for what was promoted. */
export const finalizeUnmatched = steps((job) => ({
  async Finalize(input: FinalizeInput) {
    if (input.error) return finalize(job, input)
    await amend(job, (head) =>
      holds(head, input.run, input.generation) && head.promotedThrough === input.epoch - 1
        ? { ...head, promotedThrough: input.epoch, parked: null }
        : null,
    )
    return { next: 'plan', run: input.run }
  },
}))

/** Collects after each epoch, by whatever rule. */
export const collecting = (how: (job: Job) => Promise<unknown>): Sabotage =>
  steps((job) => ({
    async Finalize(input: FinalizeInput) {
      const output = await finalize(job, input)
      await how(job)
      return output
    },
  }))

/** The real collection. */
export const collectRightly = collecting(collect)
/** The head is read before the names are listed. */
export const collectHeadFirst = collecting((job) => {
  const { ledger } = job.place
  let seen: Promise<Head | null> | null = null
  const frozen: Ledger = {
    ...ledger,
    read(pipeline) {
      seen ??= ledger.read(pipeline)
      return seen
    },
  }
  return collect({ ...job, place: { ...job.place, ledger: frozen } })
})
/** The open attempt is no root. */
export const collectOpenAttempt = collecting((job) => {
  const { ledger } = job.place
  const blind: Ledger = {
    ...ledger,
    async read(pipeline) {
      const head = await ledger.read(pipeline)
      return head && { ...head, open: null }
    },
  }
  return collect({ ...job, place: { ...job.place, ledger: blind } })
})
/** By age: everything but what the newest epoch names. */
export const collectByAge = collecting(async (job) => {
  const head = await readHead(job)
  const names: string[] = []
  for await (const { name } of job.place.store.list(incarnationPrefix(head.pipeline, head.incarnation))) {
    if (!name.startsWith(attemptPrefix(head.pipeline, head.incarnation, head.committed.attempt))) names.push(name)
  }
  await job.place.store.delete(names)
})

/** Rings are not asked about when a run leaves. */
export const leaveWithoutWakes = inLedger((ledger) => ({
  swap: (expected, head, options) => ledger.swap(expected, head, options?.history && { history: options.history }),
}))

/** The next run is started first, then this one is released. */
export const startBeforeRelease = inPlace((place) => {
  let early = false
  const wasAbsorbed = async (pipeline: string) => {
    await place.ledger.ring(pipeline)
    const head = await place.ledger.read(pipeline)
    early = true
    if (head?.run.open && (await place.launcher.status(head.run.place)) === 'running') return
    await place.launcher.start({ pipeline, sequence: (head?.run.sequence ?? 0) + 1, wakes: 0 })
  }
  return {
    ledger: {
      ...place.ledger,
      async swap(expected, head, options) {
        if (!head.run.open && options?.wakes === undefined) await wasAbsorbed(head.pipeline)
        return place.ledger.swap(expected, head, options)
      },
    },
    launcher: { ...place.launcher, start: async (run) => (early ? 'exists' : place.launcher.start(run)) },
  }
})

/** A takeover leaves open what was open, or forgets to count it. */
export const takeover = (change: (before: Head, after: Head) => Partial<Head>): Sabotage =>
  inLedger((ledger) => ({
    async swap(expected, head, options) {
      const before = await ledger.read(head.pipeline)
      const takes = before !== null && head.generation > before.generation
      return ledger.swap(expected, takes ? { ...head, ...change(before, head) } : head, options)
    },
  }))

/** Executions do not count what they spend. */
export const endlessRuns = steps((job) => ({
  Plan: (input: PlanInput) => plan(job, { ...input, run: { ...input.run, events: 0 } }),
}))

/** Plans travel from step to step. */
export const planInPayload = steps((job) => ({
  async Plan(input: PlanInput) {
    const output = await plan(job, input)
    if (output.next !== 'operate') return output
    const names = job.place.store.list(attemptPrefix(input.run.pipeline, output.key.incarnation, output.key.attempt))
    for await (const { name } of names) return { ...output, plan: (await job.place.store.read(name))!.toString() }
    return output
  },
}))

/** Offsets pass through JavaScript numbers. */
export const roundedOffsets = inPlace((place) => ({
  async source(pipeline, id, spec, incarnation) {
    const log = await place.source(pipeline, id, spec, incarnation)
    const rounded = (offset: bigint) => BigInt(Number(offset))
    return {
      ...log,
      async bounds() {
        const { topicId, partitions } = await log.bounds()
        return {
          topicId,
          partitions: partitions.map(({ partition, end, start }) => ({
            partition,
            start: rounded(start),
            end: rounded(end),
          })),
        }
      },
    }
  },
}))

/** A restore puts the savepoint's epoch back into the head. */
export const restoreLowersEpoch = (from: () => Head | null): Sabotage =>
  inLedger((ledger) => ({
    async swap(expected, head, options) {
      const back = from()
      return ledger.swap(
        expected,
        back === null ? head : { ...head, committed: back.committed, promotedThrough: back.promotedThrough },
        options,
      )
    },
  }))
