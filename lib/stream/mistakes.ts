/**
 * Every mistake that a pipeline can have, found at once.
 *
 * Pure: arranged nodes and settings in, sentences out, each naming the node or setting at fault and its bound.
 */
import { limits } from '../model/limits.ts'
import type { Settings } from '../model/settings.ts'
import type { SinkSpec } from '../ports/spec.ts'
import { type ArrangedNode, isKeyed } from './arrange.ts'
import type { AnyFold, Graph, GraphHead } from './graph.ts'

/** Sentences, in a fixed order; empty when the pipeline is sound. */
export function mistakesOf(graph: Graph, nodes: readonly ArrangedNode[]): string[] {
  return [
    ...headMistakes(graph.head),
    ...shapeMistakes(graph, nodes),
    ...idMistakes(nodes),
    ...nodes.flatMap(nodeMistakes),
    ...nodes.flatMap((node) => guaranteeMistakes(graph.head, node)),
    ...settingsMistakes(graph.head.settings),
  ]
}

const idPattern = /^[a-z0-9][a-z0-9-]{0,59}$/
const idRule = 'must be 1 to 60 of a-z, 0-9 and -, and begin with a letter or digit'

function headMistakes(head: GraphHead): string[] {
  return idPattern.test(head.pipeline) ? [] : [`pipeline id ${JSON.stringify(head.pipeline)} ${idRule}`]
}

function shapeMistakes(graph: Graph, nodes: readonly ArrangedNode[]): string[] {
  const mistakes: string[] = []
  if (!nodes.some(({ node }) => node.kind === 'source')) mistakes.push('there is no source: call .from(topic)')
  if (graph.sinks.length === 0) mistakes.push('there is no sink: end with .to(id, sink)')
  for (const stranger of graph.strangers)
    mistakes.push(`a stream of another pipeline() value (${stranger.pipeline}) is joined: join branches of one`)
  const lanes = nodes.reduce((sum, { node }) => sum + (node.kind === 'sink' ? node.spec.lanes : 0), 0)
  if (lanes > limits.mapConcurrencyMax)
    mistakes.push(`the sinks have ${lanes} lanes together, at most ${limits.mapConcurrencyMax} can be promoted at once`)
  for (const arranged of nodes)
    if (arranged.outputs.length === 0 && arranged.node.kind !== 'sink' && graph.sinks.length > 0)
      mistakes.push(
        `${arranged.id} leads nowhere: add ${isKeyed(arranged) ? 'an aggregate and ' : ''}.to(id, sink) after it`,
      )
  return mistakes
}

function idMistakes(nodes: readonly ArrangedNode[]): string[] {
  const counts = new Map<string, number>()
  for (const { id } of nodes) counts.set(id, (counts.get(id) ?? 0) + 1)
  return [...counts].flatMap(([id, count]) => {
    const mistakes = idPattern.test(id) ? [] : [`id ${JSON.stringify(id)} ${idRule}`]
    if (count > 1) mistakes.push(`id ${JSON.stringify(id)} is used ${count} times: give each node an id of its own`)
    return mistakes
  })
}

function nodeMistakes({ id, node }: ArrangedNode): string[] {
  switch (node.kind) {
    case 'source':
      return [
        ...topicMistakes(id, [node.spec.topic]),
        ...atLeast(`${id}: maxOutOfOrdernessMs`, node.maxOutOfOrdernessMs, 0),
        ...(node.idleAfterMs === null ? [] : atLeast(`${id}: idleAfterMs`, node.idleAfterMs, 1)),
        ...(node.timestamp === null ? [] : functionMistakes(`${id}: timestamp`, node.timestamp)),
      ]
    case 'window':
      return [
        ...atLeast(`${id}: window sizeMs`, node.window.sizeMs, 1),
        ...atLeast(`${id}: allowedLatenessMs`, node.window.allowedLatenessMs, 0),
        ...foldMistakes(id, node.fold),
      ]
    case 'aggregate':
      return foldMistakes(id, node.fold)
    case 'sink':
      return sinkMistakes(id, node.spec)
    case 'merge':
    case 'late':
      return []
    default:
      return functionMistakes(id, node.fn)
  }
}

function foldMistakes(id: string, fold: AnyFold): string[] {
  return [
    ...functionMistakes(`${id}: add`, fold.add),
    ...(fold.create === null ? [] : functionMistakes(`${id}: create`, fold.create)),
    ...(fold.result === null ? [] : functionMistakes(`${id}: result`, fold.result)),
    ...atLeast(`${id}: version`, fold.version, 1),
  ]
}

function sinkMistakes(id: string, spec: SinkSpec<unknown, unknown>): string[] {
  const mistakes = between(`${id}: lanes`, spec.lanes, 1, limits.mapConcurrencyMax)
  if (spec.kind !== 'topic') return mistakes
  if (spec.route?.topics.length === 0) mistakes.push(`${id}: route lists no topic`)
  return [...mistakes, ...topicMistakes(id, [spec.topic, ...(spec.route?.topics ?? [])])]
}

/** What the pipeline promises, its sinks must be able to give; what a sink refuses must have somewhere to go. */
function guaranteeMistakes({ settings, deadLetter }: GraphHead, { id, node }: ArrangedNode): string[] {
  if (node.kind !== 'sink' || node.spec.kind !== 'sink') return []
  const { type, guarantee, onReject } = node.spec
  const mistakes: string[] = []
  if (settings.guarantee === 'exactly-once' && guarantee !== 'exactly-once')
    mistakes.push(
      `${id}: a ${type} sink is ${guarantee}, the pipeline is exactly-once: take a sink that is exactly-once, or set ` +
        `guarantee to 'at-least-once' (rows may come twice) or 'at-most-once' (rows may be lost, and are counted)`,
    )
  if (onReject !== 'dead-letter') return mistakes
  if (deadLetter === null)
    mistakes.push(`${id}: onReject 'dead-letter' needs a sink for them: set onError to deadLetter(id, sink)`)
  if (deadLetter?.id === id)
    mistakes.push(`${id}: the sink of the dead letters itself must park on what it refuses: leave out onReject`)
  return mistakes
}

const guarantees: readonly string[] = ['exactly-once', 'at-least-once', 'at-most-once']

/** The rule of Kafka, which the embedded log shares. */
function topicMistakes(id: string, topics: readonly string[]): string[] {
  return topics
    .filter((topic) => !/^[a-zA-Z0-9._-]{1,249}$/.test(topic) || topic === '.' || topic === '..')
    .map((topic) => `${id}: topic ${JSON.stringify(topic)} must be 1 to 249 of a-z, A-Z, 0-9, ., _ and -`)
}

function settingsMistakes(settings: Settings): string[] {
  const { checkpoint, epoch, retain, leaseMs, shards, keyGroups } = settings
  const mistakes = [
    ...atLeast('checkpoint.intervalMs', checkpoint.intervalMs, 0),
    ...atLeast('checkpoint.minPauseMs', checkpoint.minPauseMs, 0),
    ...between('checkpoint.timeoutMs', checkpoint.timeoutMs, 1, limits.functionMs),
    ...atLeast('checkpoint.tolerableFailures', checkpoint.tolerableFailures, 0),
    ...between('epoch.spanMax', epoch.spanMax, 1, limits.epochSpanMax),
    ...atLeast('epoch.fuseSpanMax', epoch.fuseSpanMax, 0),
    ...atLeast('epoch.fuseMs', epoch.fuseMs, 0),
    ...atLeast('epoch.convictAfter', epoch.convictAfter, 1),
    ...atLeast('retain.epochs', retain.epochs, 1),
    ...atLeast('leaseMs', leaseMs, 1),
    ...between('shards', shards, 1, limits.mapConcurrencyMax),
    ...between('keyGroups', keyGroups, 1, limits.keyGroupsMax),
    ...restartMistakes(settings),
    ...retryMistakes(settings),
  ]
  if (shards > keyGroups) mistakes.push(`shards (${shards}) must not exceed keyGroups (${keyGroups})`)
  if (checkpoint.timeoutMs >= leaseMs / 2)
    mistakes.push(`checkpoint.timeoutMs (${checkpoint.timeoutMs}) must be below half of leaseMs (${leaseMs})`)
  if (!guarantees.includes(settings.guarantee))
    mistakes.push(`guarantee must be ${guarantees.join(', ')}, not ${JSON.stringify(settings.guarantee)}`)
  return mistakes
}

function restartMistakes({ restart }: Settings): string[] {
  switch (restart.strategy) {
    case 'none':
      return []
    case 'fixed-delay':
      return [...atLeast('restart.attempts', restart.attempts, 0), ...atLeast('restart.delayMs', restart.delayMs, 0)]
    case 'exponential-delay':
      return [
        ...atLeast('restart.initialMs', restart.initialMs, 1),
        ...atLeast('restart.maxMs', restart.maxMs, restart.initialMs),
        ...(restart.multiplier >= 1 ? [] : [`restart.multiplier must be at least 1, not ${restart.multiplier}`]),
        ...(restart.attempts === null ? [] : atLeast('restart.attempts', restart.attempts, 0)),
      ]
    case 'failure-rate':
      return [
        ...between('restart.failures', restart.failures, 1, limits.failureTimesMax),
        ...atLeast('restart.intervalMs', restart.intervalMs, 1),
        ...atLeast('restart.delayMs', restart.delayMs, 0),
      ]
    default:
      return ['restart.strategy must be none, fixed-delay, exponential-delay or failure-rate']
  }
}

function retryMistakes({ promotionRetryMs: [first, max] }: Settings): string[] {
  return [...atLeast('promotionRetryMs[0]', first, 1), ...atLeast('promotionRetryMs[1]', max, first)]
}

function functionMistakes(name: string, fn: unknown): string[] {
  if (typeof fn !== 'function') return [`${name} must be a function, not ${fn === null ? 'null' : typeof fn}`]
  return fn.constructor.name === 'AsyncFunction' ? [`${name} must be synchronous, not an async function`] : []
}

function atLeast(name: string, value: number, min: number): string[] {
  return between(name, value, min, Number.MAX_SAFE_INTEGER)
}

function between(name: string, value: number, min: number, max: number): string[] {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return []
  const bound = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  return [`${name} must be a whole number ${bound}, not ${value}`]
}
