/**
 * Every combination that cannot work and that synthesis can see, found at once.
 *
 * Pure: properties and the compiled pipeline in, sentences out, each naming the property at fault and its bound.
 */
import { Token } from 'aws-cdk-lib'
import { stepTimeoutSeconds } from '../lib/epoch/machine.ts'
import { PawlError } from '../lib/model/errors.ts'
import { limits } from '../lib/model/limits.ts'
import { expressSettings, type Settings } from '../lib/model/settings.ts'
import type { ExactlyOncePipelineProps, KafkaSource } from './props.ts'
import type { Description } from './topology.ts'

/** Between the end of a step and the end of its function: room to write the error down. */
export const functionSpareMs = 5_000
/** What a cold function in a VPC may need before it answers. */
const stepSecondsMin = 10
const transactionTimeoutMsDefault = 60_000
const machineNameCharsMax = 80
const expressTimeoutMsMax = 4 * 60_000
/** A watcher gives up 15 s before its end, and looks every five. */
const expressLeaseMsMax = limits.expressMs - 30_000

/** The pipeline's settings with what the deployment changes. */
export function settingsOf({ settings }: Description, props: ExactlyOncePipelineProps): Settings {
  const changed = { ...settings, checkpoint: { ...settings.checkpoint, ...props.checkpoint } }
  return props.workflow === 'express' ? expressSettings(changed) : changed
}

/** Name of the state machine; unique in an account and region, so that two deployments cannot be one pipeline. */
export function machineName(stageName: string, pipeline: string): string {
  return `pawl-${stageName}-${pipeline}`
}

/** Throws `DEPLOYMENT_INVALID` that lists every mistake. */
export function mustBeDeployable(props: ExactlyOncePipelineProps, description: Description): void {
  const mistakes = mistakesOf(props, description)
  if (mistakes.length === 0) return
  const { pipeline } = description.topology
  throw new PawlError('DEPLOYMENT_INVALID', `${pipeline}: ${mistakes.join('; ')}`, { mistakes: mistakes.join('\n') })
}

/** Sentences, in a fixed order; empty when the deployment is sound. */
export function mistakesOf(props: ExactlyOncePipelineProps, description: Description): string[] {
  return [
    ...nameMistakes(props, description),
    ...sourceMistakes(props),
    ...intakeMistakes(props, description),
    ...timeMistakes(props, settingsOf(description, props)),
    ...expressMistakes(props, settingsOf(description, props)),
    ...sizeMistakes(description),
  ]
}

function nameMistakes({ stageName }: ExactlyOncePipelineProps, { topology }: Description): string[] {
  if (Token.isUnresolved(stageName)) return ['stageName must be known at synthesis']
  const mistakes = /^[a-z0-9][a-z0-9-]*$/.test(stageName)
    ? []
    : [`stageName ${JSON.stringify(stageName)} must be of a-z, 0-9 and -, and begin with a letter or digit`]
  const excess = machineName(stageName, topology.pipeline).length - machineNameCharsMax
  return excess > 0 ? [...mistakes, `stageName and pipeline id are ${excess} characters too long together`] : mistakes
}

function sourceMistakes(props: ExactlyOncePipelineProps): string[] {
  const { source, trigger, vpcEndpoints } = props
  const { clusterArn, bootstrapServers, vpc, subnets, securityGroups = [] } = source
  const mistakes = authenticationMistakes(source)
  if (clusterArn === undefined && bootstrapServers === undefined)
    mistakes.push('source names neither clusterArn nor bootstrapServers')
  if (clusterArn !== undefined && vpc === undefined)
    mistakes.push('source.vpc is missing: an MSK cluster is reached from inside its VPC')
  if (vpc !== undefined && securityGroups.length === 0)
    mistakes.push('source.securityGroups is empty: functions in a VPC need one that the brokers let in')
  if (vpc === undefined && (subnets !== undefined || securityGroups.length > 0))
    mistakes.push('source.subnets and source.securityGroups need source.vpc')
  if (vpc === undefined && vpcEndpoints !== undefined) mistakes.push('vpcEndpoints needs source.vpc')
  if (trigger === 'schedule' && props.batchWindow !== undefined)
    mistakes.push('batchWindow is of the mapping, which trigger: schedule leaves out')
  return mistakes
}

/** What an event does not say, an intake of events cannot give. */
function intakeMistakes({ intake, trigger, sinkNetwork, source }: ExactlyOncePipelineProps, { sources }: Description) {
  if (intake !== 'event') return sinkNetwork === undefined ? [] : ['sinkNetwork needs intake: event']
  const mistakes: string[] = []
  if (trigger === 'schedule') mistakes.push('intake: event needs the mapping, which trigger: schedule leaves out')
  if (sinkNetwork === 'vpc' && source.vpc === undefined) mistakes.push('sinkNetwork: vpc needs source.vpc')
  const read = sources.filter(({ ownCluster }) => !ownCluster)
  for (const { id, start, isolation, group, onLostOffsets, topic } of read) {
    const refuse = (what: string, why: string) =>
      mistakes.push(`source ${id}: intake: event cannot have ${what}: ${why}`)
    if (isolation === 'read_committed') refuse('isolation read_committed', 'an event does not tell what was aborted')
    if (start === 'latest') refuse('start latest', 'nothing tells the first event from one before it that was lost')
    if (group !== null) refuse(`group ${group}`, 'functions that know the progress do not reach the brokers')
    if (onLostOffsets === 'skip') refuse('onLostOffsets: skip', 'a gap may be a batch that was lost, and never skipped')
    if (read.some((other) => other.topic === topic && other.id < id)) refuse(`topic ${topic} twice`, 'read it once')
  }
  return mistakes
}

function authenticationMistakes({ authentication, clusterArn, encrypted }: KafkaSource): string[] {
  const { type } = authentication
  const mistakes: string[] = []
  const secret = 'secret' in authentication ? authentication.secret : undefined
  const needsSecret = type !== 'none' && type !== 'tls' && type !== 'iam'
  if (needsSecret && secret === undefined) mistakes.push(`source.authentication ${type} needs a secret`)
  if (!needsSecret && secret !== undefined) mistakes.push(`source.authentication ${type} takes no secret`)
  if (type === 'iam' && clusterArn === undefined)
    mistakes.push('source.authentication iam needs clusterArn: only MSK has it')
  if (type === 'plain' && clusterArn !== undefined) mistakes.push('source.authentication plain is not known to MSK')
  if (encrypted === false && (type === 'tls' || type === 'iam'))
    mistakes.push(`source.encrypted: false contradicts source.authentication ${type}`)
  return mistakes
}

function timeMistakes({ source }: ExactlyOncePipelineProps, settings: Settings): string[] {
  const { leaseMs, checkpoint } = settings
  const stepMs = stepTimeoutSeconds(settings) * 1000
  const timeoutMsMax = limits.functionMs - functionSpareMs
  const transactionTimeoutMs = source.transactionTimeoutMs ?? transactionTimeoutMsDefault
  const mistakes: string[] = []
  if (checkpoint.timeoutMs > timeoutMsMax)
    mistakes.push(`checkpoint.timeoutMs (${checkpoint.timeoutMs}) is beyond a function's limit of ${timeoutMsMax}`)
  if (checkpoint.timeoutMs >= leaseMs / 2)
    mistakes.push(`checkpoint.timeoutMs (${checkpoint.timeoutMs}) must be below half of leaseMs (${leaseMs})`)
  if (stepMs < stepSecondsMin * 1000)
    mistakes.push(
      `leaseMs (${leaseMs}) leaves a step ${stepMs} ms: deployed it needs at least ${2000 * (stepSecondsMin + 1)}`,
    )
  if (transactionTimeoutMs > stepMs)
    mistakes.push(
      `source.transactionTimeoutMs (${transactionTimeoutMs}) exceeds what leaseMs leaves a promotion (${stepMs}): lower it or raise leaseMs`,
    )
  return mistakes
}

/** Five minutes hold one epoch with a hand-over, and whoever watches a lease must see it end. */
function expressMistakes({ workflow }: ExactlyOncePipelineProps, { leaseMs, checkpoint }: Settings): string[] {
  if (workflow !== 'express') return []
  const mistakes: string[] = []
  if (checkpoint.timeoutMs > expressTimeoutMsMax)
    mistakes.push(
      `workflow: express: checkpoint.timeoutMs (${checkpoint.timeoutMs}) is beyond ${expressTimeoutMsMax}: an execution ends after five minutes`,
    )
  if (leaseMs > expressLeaseMsMax)
    mistakes.push(
      `workflow: express: leaseMs (${leaseMs}) is beyond ${expressLeaseMsMax}: no execution lives to see it end`,
    )
  return mistakes
}

function sizeMistakes({ settings, topology, sinks }: Description): string[] {
  const lanes = topology.nodes.reduce((sum, node) => sum + (node.kind === 'sink' ? node.lanes : 0), 0)
  const tooMany = (count: number, of: string) =>
    count > limits.mapConcurrencyMax ? [`${count} ${of}: a Map runs at most ${limits.mapConcurrencyMax} at once`] : []
  const files = sinks.filter(({ type }) => type === 'files')
  return [
    ...tooMany(settings.shards, 'tasks a stage (shards)'),
    ...tooMany(lanes, 'lanes of all sinks'),
    ...files.map(({ id }) => `sink ${id} writes files, and a function has no directory that stays`),
  ]
}
