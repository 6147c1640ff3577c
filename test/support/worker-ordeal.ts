/**
 * An ordeal: a word count is fed while its workers are killed, doubled, stopped and let go on, and its broker goes.
 *
 * Deeds are drawn from a seed; when exactly they strike is up to the machine. Whatever happens, the output must be
 * the exact fold of the input, the audit must find the chain sound, and nothing may hang or be left behind.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { lineStream } from '../../examples/demo/lines.ts'
import type { Head } from '../../lib/model/head.ts'
import { type Prng, prng } from '../../lib/model/prng.ts'
import { type Archive, openArchive } from './worker-archive.ts'
import { WorkerFleet } from './worker-fleet.ts'
import { runPawl } from './worker-process.ts'
import { judgeOutput, type Verdict } from './worker-verdict.ts'
import { pipelineId, type World } from './worker-world.ts'

/** How hard it gets. */
export interface OrdealOptions {
  readonly seed: number
  readonly lines: number
  /** Plain kills; each of the others kills workers too. */
  readonly kills: number
  /** Two workers at once. */
  readonly twins: number
  /** Workers that are stopped, taken over, and let go on. */
  readonly zombies: number
  /** The broker goes and comes back, by turns in good order and by SIGKILL. */
  readonly outages: number
  readonly say?: (line: string) => void
}

/** What it came to. */
export interface Ordeal extends Verdict {
  readonly kills: number
  readonly twins: number
  readonly zombies: number
  readonly outages: number
  readonly takeovers: number
  /** Attempts that were opened and never committed, as far as workers said so before they died. */
  readonly died: number
  readonly seconds: number
  /** From a kill to the next output, in ms, sorted. */
  readonly recoveriesMs: readonly number[]
  /** CPU seconds a second of workers that stand by. */
  readonly standbyCpu: readonly number[]
}

type Deed = 'kill' | 'twins' | 'zombie' | 'outage'

const caughtUpMs = 120_000

/** Runs it all. The world stays the caller's. */
export async function ordeal(world: World, options: OrdealOptions): Promise<Ordeal> {
  const { say = () => {} } = options
  const startedAtMs = performance.now()
  const random = prng(options.seed)
  const deeds = shuffled(random, options)
  const fleet = new WorkerFleet(world, random)
  const archive = openArchive(world.directory, pipelineId)
  const progress = { done: 0 }
  try {
    fleet.start()
    const feeding = feed(world, fleet, options, () => (progress.done + 1) / (deeds.length + 1))
    for (const deed of deeds) {
      await Promise.race([strike(fleet, deed), fleet.failed, feeding.then(() => new Promise(() => {}))])
      progress.done++
      if (progress.done % 10 === 0) say(`${progress.done} of ${deeds.length} deeds, ${archive.manifests.length} epochs`)
    }
    await Promise.race([feeding, fleet.failed])
    await Promise.race([caughtUp(archive, options.lines), fleet.failed])
    const faults = await fleet.finish()
    await archive.read()
    const verdict = await judge(world, archive)
    return {
      ...verdict,
      faults: [...faults, ...verdict.faults],
      ...fleet.figures(archive.manifests.length - 1),
      seconds: (performance.now() - startedAtMs) / 1000,
    }
  } finally {
    await fleet.stop()
    await archive.close()
  }
}

function shuffled(random: Prng, { kills, twins, zombies, outages }: OrdealOptions): Deed[] {
  const counts: readonly (readonly [Deed, number])[] = [
    ['kill', kills],
    ['twins', twins],
    ['zombie', zombies],
    ['outage', outages],
  ]
  const deeds = counts.flatMap(([deed, count]) => Array.from({ length: count }, () => deed))
  for (let i = deeds.length - 1; i > 0; i--) {
    const j = random.int(i + 1)
    ;[deeds[i], deeds[j]] = [deeds[j], deeds[i]]
  }
  return deeds
}

function strike(fleet: WorkerFleet, deed: Deed): Promise<void> {
  if (deed === 'kill') return fleet.killOne()
  if (deed === 'twins') return fleet.double()
  return deed === 'zombie' ? fleet.raiseZombie() : fleet.cutBroker()
}

/** Lines come all the time, and no faster than the deeds. */
async function feed(world: World, fleet: WorkerFleet, options: OrdealOptions, share: () => number): Promise<void> {
  const stream = lineStream(options.seed)
  for (let fed = 0; fed < options.lines; await sleep(50)) {
    const room = Math.floor(options.lines * share()) - fed
    const count = Math.min(options.lines - fed, share() === 1 ? 20_000 : Math.ceil(room / 20))
    if (count <= 0) continue
    const lines = stream.take(count).trimEnd().split('\n')
    for (let isFed = false; !isFed; ) {
      while (fleet.brokerIsAway) await sleep(50)
      // A batch whose answer was lost with the broker is sent again: the input then holds it twice, which is no fault.
      isFed = await world.feed(lines).then(
        () => true,
        (error) => {
          if (!fleet.brokerIsAway && world.broker === null) throw error
          return sleep(50, false)
        },
      )
    }
    fed += count
  }
  await world.endFeed()
}

/** Until everything that was fed is counted and visible, and stays so. */
async function caughtUp(archive: Archive, lines: number): Promise<void> {
  const deadline = performance.now() + caughtUpMs
  for (let quiet = 0; quiet < 5; await sleep(200)) {
    const head = await archive.read()
    const isQuiet = head !== null && counted(archive) >= lines && isAtRest(head)
    quiet = isQuiet ? quiet + 1 : 0
    if (performance.now() > deadline)
      throw new Error(`only ${counted(archive)} of ${lines} lines were counted: ${JSON.stringify(head)}`)
  }
}

function isAtRest({ open, committed, promotedThrough }: Head): boolean {
  return open === null && committed.epoch === promotedThrough
}

function counted({ manifests }: Archive): number {
  return manifests.at(-1)?.progress.reduce((sum, { end }) => sum + Number(end), 0) ?? 0
}

async function judge(world: World, { manifests }: Archive): Promise<Verdict> {
  const collected = await runPawl(['collect', ...world.args])
  const audit = await runPawl(['verify', pipelineId, ...world.verifyArgs])
  const [input, { rows, byEpoch }] = await Promise.all([world.input(), world.output()])
  const verdict = judgeOutput({ input, manifests, rows })
  const faults = [...verdict.faults]
  if (collected.code !== 0) faults.push(`collecting ends with ${collected.code}: ${collected.stderr}`)
  if (!/^orphans +none$/m.test(audit.stdout)) faults.push(`objects are left behind: ${audit.stdout}`)
  if (audit.code !== 0) faults.push(`the audit ends with ${audit.code}: ${audit.stdout}${audit.stderr}`)
  if (byEpoch !== null)
    for (const { epoch, counts } of manifests) {
      const rowsOut = counts.out['word-counts'] ?? 0
      if ((byEpoch.get(epoch) ?? 0) !== rowsOut)
        faults.push(`epoch ${epoch} shows ${byEpoch.get(epoch) ?? 0} rows, its manifest has ${rowsOut}`)
    }
  const left = world.leftovers()
  if (left.length > 0) faults.push(`${left.length} files are left behind, such as ${left[0]}`)
  return { ...verdict, faults }
}
