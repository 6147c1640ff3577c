/**
 * An actor: one simulated process, which runs the real machine with the real steps over guarded ports.
 *
 * What it keeps in memory (warm state, opened ports) dies with it. Everything else is the world's.
 */
import { interpreter } from '../adapters/interpreter/machine.ts'
import { type AnyInput, call as callStep, type StepCalls, stepCalls } from '../epoch/execute.ts'
import type { Job } from '../epoch/job.ts'
import { machine, type StepName, stepNames, taskStates } from '../epoch/machine.ts'
import type { ProgressEvent } from '../model/event.ts'
import { limits } from '../model/limits.ts'
import type { RunKey } from '../model/steps.ts'
import type { Place } from '../ports/place.ts'
import type { Sink } from '../ports/sink.ts'
import type { Store } from '../ports/store.ts'
import type { RunStart } from '../ports/system.ts'
import { StateCache } from '../state/cache.ts'
import { Crash, type FaultScript, type Gate, gate, guarded } from './gate.ts'
import type { World } from './world.ts'

export interface Actor {
  readonly number: number
  readonly gate: Gate
  /** Task states that its machine has called. */
  readonly steps: readonly string[]
  readonly job: Job
  /** Settles when its machine ends, for whatever reason. Never rejects. */
  readonly ended: Promise<void>
}

/** Where a test may put a broken part, to prove that the simulation sees it. */
export interface Sabotage {
  /** Steps by Task state name, made from the job. */
  readonly steps?: (job: Job) => StepCalls
  readonly sink?: (world: World, id: string, store: Store) => Sink | null
  /** Wraps the ports of a process. */
  readonly place?: (place: Place) => Place
}

/** Which process to start, in which world, and what goes wrong in it. */
export interface ActorOptions {
  readonly world: World
  readonly number: number
  readonly start: RunStart
  readonly script: FaultScript
  readonly sabotage?: Sabotage
  /** Whether others can see that it died. */
  readonly mortal: boolean
  /** Each step starts with nothing in memory and runs what is deployed by then, as a fresh function does. */
  readonly cold?: boolean
  /** The run was started by a person who wants a parked pipeline to go on. */
  readonly resume?: boolean
  readonly onEvent: (event: ProgressEvent) => void
}

export function startActor(options: ActorOptions): Actor {
  const { world, number, start, script, sabotage, mortal } = options
  const held = gate(world, number, withoutRepeats(script))
  world.running.add(placeOf(number))
  held.stuck.then(() => world.running.delete(placeOf(number)))
  const warm = jobOf(options, held)
  const run: RunKey = {
    pipeline: start.pipeline,
    id: idOf(world, start),
    sequence: start.sequence,
    place: placeOf(number),
    lingerMs: 0,
    resume: options.resume ?? false,
    startedAtMs: world.clock.nowMs(),
  }
  const callsOf = (job: Job): StepCalls => ({
    ...stepCalls(job),
    ...broken(job, sabotage),
  })
  const steps: string[] = []
  const underWay = new Set<Promise<unknown>>()
  const call = (name: string, input: never) => {
    steps.push(name)
    const calls = callsOf(options.cold ? jobOf(options, held) : warm)
    const step = watched(world, held, name, input, steps.length, calls[name])
    const over = step.catch(() => {}).finally(() => underWay.delete(over))
    underWay.add(over)
    return step
  }
  const ended = interpret(world, held, warm, call, run).then(async (how) => {
    world.note(`ends: ${how}`, number)
    // A step that the machine gave up may still be at work: the process is not over before it is.
    while (underWay.size > 0) await Promise.all(underWay)
    world.running.delete(placeOf(number))
    if (!held.dead || mortal) world.gone.add(placeOf(number))
  })
  return { number, gate: held, job: warm, steps, ended }
}

/** Of two executions that were started as one, each has an id of its own; here they sometimes share one. */
function idOf(world: World, start: RunStart): string {
  const id = world.random.id()
  if (world.workflow === 'standard') return id
  const known = world.ids.get(start)
  if (known !== undefined && world.random.chance(0.5)) return known
  world.ids.set(start, id)
  return id
}

/** Steps of a sabotage fail as the real ones do. */
function broken(job: Job, sabotage: Sabotage | undefined): StepCalls {
  const broken = sabotage?.steps?.(job) ?? {}
  const found = stepNames.flatMap((name) => {
    const step = broken[taskStates[name]]
    if (step === undefined) return []
    const call = (input: AnyInput) => callStep(name, (_, given) => step(given as never), job, input)
    return [[taskStates[name], call] as const]
  })
  return Object.fromEntries(found)
}

type NamedCall = (name: string, input: never) => Promise<unknown>

async function interpret(world: World, held: Gate, job: Job, call: NamedCall, run: RunKey): Promise<string> {
  const resources = Object.fromEntries(stepNames.map((name) => [name, `local:${name}`])) as Record<StepName, string>
  const definition = machine({ resources, settings: job.compiled.settings })
  const names = Object.values(taskStates)
  const steps = Object.fromEntries(names.map((name) => [name, timely(held, (input) => call(name, input))]))
  try {
    const walk = await interpreter({ definition, steps, clock: world.clock, retryPauseMs: 0 })
    return JSON.stringify(((await walk.run({ run })) as { reason?: string }).reason ?? 'left')
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  }
}

/** States Language counts about this many history events for a Task state, with its Map iteration. */
const eventsPerStep = 7

/** An Express execution ends after five minutes, whatever it is at. */
function isOver({ clock }: World, { run }: AnyInput): boolean {
  return clock.nowMs() - run.startedAtMs > limits.expressMs
}

/** One call of a step, held to its limits. What it reports as corrupt or as a bug must be one. */
async function watched(
  world: World,
  held: Gate,
  name: string,
  input: never,
  nth: number,
  step: (input: never) => Promise<unknown>,
): Promise<unknown> {
  mustFit(world, `the input of ${name}`, input)
  const { executionEventsMax } = limits
  if (nth * eventsPerStep > executionEventsMax) world.report(`an execution stays below ${executionEventsMax} events`)
  // A world that is broken need not go on, perhaps for ever.
  if (world.broken !== null) held.kill()
  if (world.workflow === 'express' && isOver(world, input)) held.kill()
  if (held.dead) throw new Crash(`process ${held.actor} is dead`)
  try {
    const output = await step(input)
    mustFit(world, `the output of ${name}`, output)
    return output
  } catch (error) {
    const { name: kind, message } = error as Error
    const grave = kind === 'Bug' || (kind === 'Corrupt' && !world.damaged)
    if (grave && !held.dead) world.report(`no step reports corruption or a bug when nothing was damaged: ${message}`)
    throw error
  }
}

function mustFit(world: World, what: string, value: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? '')
  const { statePayloadBytesMax } = limits
  if (bytes > statePayloadBytesMax) world.report(`${what} is at most ${statePayloadBytesMax} bytes, not ${bytes}`)
}

/** The step, or a timeout while it is stalled: whichever the machine sees first. */
function timely(held: Gate, step: (input: never) => Promise<unknown>): (input: never) => Promise<unknown> {
  return (input) =>
    new Promise((resolve, reject) => {
      const forget = held.timedOut(reject)
      step(input).then(resolve, reject).finally(forget)
    })
}

/** Where the process with this number runs, as launchers name it. */
export function placeOf(number: number): string {
  return `process-${number}`
}

/** A job at a place whose ports are guarded. */
export function jobOf({ world, number, sabotage, onEvent }: ActorOptions, held: Gate): Job {
  const sinks = new Map<string, Sink>()
  const store = guarded(held, 'store', world.store)
  const place: Place = {
    ledger: guarded(held, 'ledger', world.ledger),
    store,
    launcher: guarded(held, 'launcher', launcherOf(world)),
    clock: world.clock,
    random: world.random,
    telemetry: { emit: onEvent },
    place: placeOf(number),
    source: async (_pipeline, id) => guarded(held, 'log', world.logs.get(id)!),
    async sink(_pipeline, id) {
      const port = isOnce(world, id) ? oncePort : 'sink'
      const found =
        sinks.get(id) ?? guardedSink(held, port, sabotage?.sink?.(world, id, store) ?? world.sinks.get(id)!.open(store))
      sinks.set(id, found)
      return found
    },
  }
  return {
    compiled: world.compiled,
    place: sabotage?.place?.(place) ?? place,
    states: new StateCache(),
    warm: new Map(),
  }
}

/** Sinks whose rows must come at most once although they keep no marker. */
const oncePort = 'once-sink'

function isOnce({ compiled, sinks }: World, id: string): boolean {
  return compiled.settings.guarantee === 'at-most-once' && sinks.get(id)?.marked === false
}

/** No sink without a marker can tell a call that its own client repeats: adapters owe that it does not. */
function withoutRepeats(script: FaultScript): FaultScript {
  return (call) => {
    const fault = script(call)
    return fault?.fault === 'repeated' && call.port === oncePort && call.method === 'promote' ? null : fault
  }
}

function guardedSink(held: Gate, port: string, sink: Sink): Sink {
  const stage: Sink['stage'] = async (context) =>
    guarded(held, 'writer', await sink.stage({ ...context, store: guarded(held, 'store', context.store) }), ['add'])
  return guarded(held, port, { ...sink, stage }, ['stage'])
}

/** Starts runs of the world by name, once each, and knows which of its processes are gone. */
export function launcherOf(world: World): Place['launcher'] {
  if (world.workflow === 'express') return expressLauncher(world)
  return {
    async start(run) {
      const name = `${run.sequence}-${run.wakes}`
      if (world.names.has(name)) return 'exists'
      world.names.add(name)
      world.starts.push(run)
      return 'started'
    },
    status: async (place) => (world.gone.has(place) ? 'gone' : world.running.has(place) ? 'running' : 'unknown'),
  }
}

/** Keeps no names, starts now and then twice, and tells nothing. */
function expressLauncher(world: World): Place['launcher'] {
  return {
    blind: true,
    async start(run) {
      world.starts.push(run)
      if (world.random.chance(0.3)) world.starts.push(run)
      return 'started'
    },
    status: async () => 'unknown',
  }
}
