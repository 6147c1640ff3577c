/**
 * A task: the operators of one stage, or of all of them, wired once and fed by batch.
 *
 * Implements `Program`. Stateless nodes are wired from the sinks upwards; a node that several lead to is built
 * once. In a fused task a `keyBy` calls the keyed operators directly, in any other it ends in segments.
 */
import { assert } from '../model/assert.ts'
import { PawlError } from '../model/errors.ts'
import type { AggregateState } from '../state/aggregate-state.ts'
import type { OperatorState } from '../state/operator-state.ts'
import type { WindowState } from '../state/window-state.ts'
import { type ArrangedNode, consumersOf } from './arrange.ts'
import { type Origin, TaskContext } from './context.ts'
import type { GraphHead } from './graph.ts'
import { aggregateOperator } from './operators/aggregate.ts'
import { LateOperator } from './operators/late.ts'
import { ShardedStates } from './operators/sharded-states.ts'
import { keyByPush, ShuffleOperator } from './operators/shuffle.ts'
import { SinkOperator } from './operators/sink.ts'
import { SourceOperator } from './operators/source.ts'
import { statelessPush } from './operators/stateless.ts'
import { fanOut, type KeyedOperator, type Push, type TaskParts } from './operators/task-parts.ts'
import { windowOperator } from './operators/window.ts'
import type { Program, ProgramOptions } from './program.ts'
import { Rejections } from './rejection.ts'
import { readSegment } from './segment.ts'

/** What a task is made of. */
export interface TaskPlan {
  readonly head: GraphHead
  readonly nodes: readonly ArrangedNode[]
  readonly options: ProgramOptions
}

type NodeOf<Kind> = ArrangedNode & { readonly node: Extract<ArrangedNode['node'], { kind: Kind }> }

/** Wires a task. Throws `ASSERTION_FAILED` when a state or a writer is missing. */
export function createProgram(plan: TaskPlan): Program {
  return new Task(plan)
}

class Task implements Program {
  readonly #plan: TaskPlan
  readonly #context: TaskContext
  readonly #rejections: Rejections
  readonly #parts: TaskParts
  readonly #origins: readonly Origin[]
  readonly #built = new Map<ArrangedNode, Push>()
  readonly #sources = new Map<string, SourceOperator>()
  readonly #keyed: { readonly one: ArrangedNode; readonly operator: KeyedOperator }[] = []
  readonly #lates: LateOperator[] = []
  readonly #sinks: SinkOperator[] = []
  readonly #shuffles = new Map<number, ShuffleOperator>()
  readonly #segmentPushes: Push[] = []

  constructor(plan: TaskPlan) {
    const { head, nodes, options } = plan
    this.#plan = plan
    this.#context = new TaskContext(options.processingTimeMs)
    const dead = head.deadLetter && { id: head.deadLetter.id, writer: this.#writer(head.deadLetter.id) }
    this.#rejections = new Rejections(head.settings.onError, this.#context, dead)
    this.#parts = { context: this.#context, rejections: this.#rejections }
    this.#origins = nodes.flatMap((one) => (isKind(one, 'source') ? [one] : [])).map(originOf)
    for (const node of nodes) this.#wireEntry(node)
    this.#keyed.sort((a, b) => a.one.stage - b.one.stage || a.one.index - b.one.index)
  }

  consume(source: string, batch: Parameters<Program['consume']>[1]): void {
    const operator = this.#sources.get(source)
    assert(operator, `a task of stage ${this.#plan.options.stage} has no source ${source}`)
    operator.consume(batch)
  }

  carry(letter: Parameters<Program['carry']>[0]): void {
    this.#rejections.bury(letter)
  }

  consumeSegment(segment: Buffer): void {
    const pushes = this.#segmentPushes
    readSegment(segment, this.#context, this.#origins, (node, value) => pushes[node](value))
  }

  finish(watermarkMs: number | null): void {
    this.#context.leaveRecord()
    for (const { operator } of this.#keyed) operator.finish(watermarkMs)
  }

  eventTimes(): ReturnType<Program['eventTimes']> {
    return [...this.#sources].flatMap(([source, { maxTimestamps }]) =>
      [...maxTimestamps].map(([partition, maxTimestampMs]) => ({ source, partition, maxTimestampMs })),
    )
  }

  takeSegments(): ReturnType<Program['takeSegments']> {
    return [...this.#shuffles.values()].flatMap((shuffle) => shuffle.take())
  }

  get bufferedShuffleBytes(): number {
    let bytes = 0
    for (const shuffle of this.#shuffles.values()) bytes += shuffle.bufferedBytes
    return bytes
  }

  counts(): ReturnType<Program['counts']> {
    const rejections = this.#rejections
    const out = Object.fromEntries(this.#sinks.map(({ id, rows }) => [id, rows]))
    const dead = this.#plan.head.deadLetter
    if (dead) out[dead.id] = rejections.deadLetters
    return {
      in: [...this.#sources.values()].reduce((sum, { records }) => sum + records, 0),
      out,
      late: this.#lates.reduce((sum, { records }) => sum + records, 0),
      rejected: rejections.count,
    }
  }

  rejected(): ReturnType<Program['rejected']> {
    return this.#rejections.records
  }

  /** Begins where values enter this task: at sources, or behind shuffles. */
  #wireEntry(one: ArrangedNode): void {
    const { stage } = this.#plan.options
    if (isKind(one, 'source') && (stage === 'fused' || stage === 0)) this.#wireSource(one)
    if (one.node.kind !== 'keyBy' || stage === 'fused') return
    const consumers = consumersOf(one).filter((consumer) => consumer.stage === stage)
    if (consumers.length > 0) this.#segmentPushes[one.index] = fanOut(consumers.map((consumer) => this.#push(consumer)))
  }

  #wireSource(one: NodeOf<'source'>): void {
    const { spec, timestamp } = one.node
    const origin = this.#origins.find(({ source }) => source === one.id)!
    const { convicted } = this.#plan.options
    const options = { origin, value: spec.value, timestamp, convicted, next: this.#next(one) }
    this.#sources.set(one.id, new SourceOperator(options, this.#parts))
  }

  #push(one: ArrangedNode): Push {
    const built = this.#built.get(one) ?? this.#build(one)
    this.#built.set(one, built)
    return built
  }

  #next(one: ArrangedNode): Push {
    return fanOut(one.outputs.filter(({ node }) => node.kind !== 'late').map((output) => this.#push(output)))
  }

  #build(one: ArrangedNode): Push {
    const { id, node } = one
    switch (node.kind) {
      case 'map':
      case 'filter':
      case 'flatMap':
      case 'withKey':
        return statelessPush[node.kind](id, node.fn, this.#next(one), this.#parts)
      case 'merge':
      case 'late':
        return this.#next(one)
      case 'keyBy':
        return keyByPush(id, node.fn, this.#behindKeyBy(one), this.#parts)
      case 'aggregate':
      case 'window':
        return this.#buildKeyed(one as NodeOf<'aggregate' | 'window'>)
      case 'sink':
        return this.#buildSink(id)
      case 'source':
        throw new PawlError('ASSERTION_FAILED', `source ${id} has an input`)
    }
  }

  #behindKeyBy(one: ArrangedNode): Push {
    const consumers = consumersOf(one)
    if (this.#plan.options.stage === 'fused') return fanOut(consumers.map((consumer) => this.#push(consumer)))
    const stages = [...new Set(consumers.map((consumer) => consumer.stage))]
    return fanOut(stages.map((stage) => this.#shuffle(stage).pushOf(one.id, one.index)))
  }

  #shuffle(stage: number): ShuffleOperator {
    const { shards } = this.#plan.options
    const { keyGroups } = this.#plan.head.settings
    const shuffle = this.#shuffles.get(stage) ?? new ShuffleOperator(stage, shards, keyGroups, this.#parts)
    this.#shuffles.set(stage, shuffle)
    return shuffle
  }

  #buildKeyed(one: NodeOf<'aggregate' | 'window'>): Push {
    const { id, node } = one
    const { fold } = node
    const next = this.#next(one)
    const operator =
      node.kind === 'aggregate'
        ? aggregateOperator({ id, fold, emit: node.emit, states: this.#states(id), next }, this.#parts)
        : windowOperator(
            {
              ...{ id, fold, next, window: node.window },
              watermarkMs: this.#plan.options.watermarkMs,
              states: this.#states(id),
              late: this.#late(one),
            },
            this.#parts,
          )
    this.#keyed.push({ one, operator })
    return operator.push
  }

  #late(one: ArrangedNode): Push {
    const side = one.outputs.filter(({ node }) => node.kind === 'late')
    const late = new LateOperator(fanOut(side.map((output) => this.#push(output))))
    this.#lates.push(late)
    return late.push
  }

  #states<S extends AggregateState<unknown> | WindowState<unknown>>(id: string): ShardedStates<S> {
    const { states, stage, shards } = this.#plan.options
    const mine = states.filter((state: OperatorState): state is S => state.operator === id)
    return new ShardedStates(id, mine, this.#plan.head.settings.keyGroups, stage === 'fused' ? shards : 1)
  }

  #buildSink(id: string): Push {
    const sink = new SinkOperator(id, this.#writer(id), this.#parts)
    this.#sinks.push(sink)
    return sink.push
  }

  #writer(id: string): ProgramOptions['writers'][string] {
    const writer = this.#plan.options.writers[id]
    assert(writer, `a task of stage ${this.#plan.options.stage} has no writer for sink ${id}`)
    return writer
  }
}

function isKind<Kind extends ArrangedNode['node']['kind']>(one: ArrangedNode, kind: Kind): one is NodeOf<Kind> {
  return one.node.kind === kind
}

function originOf(one: NodeOf<'source'>, index: number): Origin {
  const { topic, key } = one.node.spec
  return { index, source: one.id, topic, key }
}
