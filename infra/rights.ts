/**
 * What each function may do: one table, from which its role is made and which the tests know by heart.
 *
 * Least privilege as far as IAM can say it: only steps that write the head may put its item, only plan and trigger
 * may ring, only finalize, abort and collect may delete (plan and
 * promote: markers that lie in the store, with the rows that were refused), nobody may replace an object (the bucket refuses it). What
 * IAM cannot say (whose attempt it is, which revision) the conditions of store and ledger enforce.
 */
import { headKey, historyPartition, pipelinesPartition, wakesKey } from '../lib/adapters/dynamodb/client.ts'
import { markersPrefix } from '../lib/model/names.ts'
import type { FunctionName } from './function-names.ts'
import { kafkaRights } from './kafka-rights.ts'
import type { Right, Subject } from './right.ts'
import { sinkRights } from './sink-rights.ts'

type Store = 'create' | 'delete'
type Items = 'head' | 'wakes' | 'history' | 'listed'

interface Duties {
  readonly reads: readonly Items[]
  readonly puts: readonly Items[]
  readonly store: readonly Store[]
  /** Rings and starts runs. */
  readonly rings?: boolean
  /** What it does with the segments of an intake of events. */
  readonly intake?: readonly ('read' | 'create' | 'delete')[]
}

/** A step renews the lease, which is a write of the head; commit and plan add history. */
export const duties: Readonly<Record<FunctionName, Duties>> = {
  trigger: { reads: ['head'], puts: [], store: [], rings: true, intake: ['read', 'create'] },
  plan: {
    reads: ['head', 'wakes', 'history'],
    puts: ['head', 'history', 'listed'],
    store: ['create'],
    rings: true,
    intake: ['read'],
  },
  operate: { reads: ['head'], puts: ['head'], store: ['create'], intake: ['read'] },
  precommit: { reads: ['head'], puts: ['head'], store: ['create'] },
  commit: { reads: ['head', 'history'], puts: ['head', 'history'], store: [] },
  promote: { reads: ['head', 'history'], puts: ['head'], store: [] },
  finalize: { reads: ['head', 'history'], puts: ['head'], store: ['delete'], intake: ['create', 'delete'] },
  abort: { reads: ['head'], puts: ['head'], store: ['delete'] },
  collect: { reads: ['head', 'history'], puts: ['head'], store: ['delete'], intake: ['create', 'delete'] },
  doctor: { reads: ['head'], puts: [], store: [], intake: ['read'] },
  recover: { reads: ['head'], puts: [], store: [], intake: ['read', 'create', 'delete'] },
}

const trace: Right = { sid: 'Trace', actions: ['xray:PutTraceSegments', 'xray:PutTelemetryRecords'], resources: ['*'] }

/** All that a function may do. */
export function rightsOf(name: FunctionName, subject: Subject): readonly Right[] {
  return [
    ...ledgerRights(name, subject),
    ...storeRights(name, subject),
    ...intakeRights(name, subject),
    ...markerRights(name, subject),
    ...launcherRights(name, subject),
    ...(name === 'doctor' ? doctorRights(subject) : []),
    ...kafkaRights(name, subject),
    ...sinkRights(name, subject),
    ...networkRights(name, subject),
    ...(subject.tracing ? [trace] : []),
    { sid: 'Logs', actions: ['logs:CreateLogStream', 'logs:PutLogEvents'], resources: [subject.logGroupArn] },
  ]
}

function ledgerRights(name: FunctionName, { tableArn, description }: Subject): Right[] {
  const { pipeline } = description.topology
  const partitions: Record<Items, string> = {
    head: headKey(pipeline).pk.S,
    wakes: wakesKey(pipeline).pk.S,
    history: historyPartition(pipeline),
    listed: pipelinesPartition,
  }
  const right = (sid: string, action: string, items: readonly Items[]): Right[] => {
    if (items.length === 0) return []
    const keys = { 'dynamodb:LeadingKeys': items.map((item) => partitions[item]) }
    return [{ sid, actions: [action], resources: [tableArn], conditions: { 'ForAllValues:StringEquals': keys } }]
  }
  const { reads, puts, rings = false } = duties[name]
  return [
    ...right('ReadLedger', 'dynamodb:GetItem', reads),
    ...right('WriteLedger', 'dynamodb:PutItem', puts),
    ...right('Ring', 'dynamodb:UpdateItem', rings ? ['wakes'] : []),
    ...right('LeaveUnlessRung', 'dynamodb:ConditionCheckItem', name === 'plan' ? ['wakes'] : []),
  ]
}

function storeRights(name: FunctionName, { bucketArn, description }: Subject): Right[] {
  const objects = `${bucketArn}/pipelines/${description.topology.pipeline}/*/attempts/*`
  const { store } = duties[name]
  const right = (sid: string, actions: readonly string[]): Right => ({ sid, actions, resources: [objects] })
  return [
    right('ReadStore', ['s3:GetObject']),
    // Without it a missing object looks like a forbidden one.
    { sid: 'TellMissing', actions: ['s3:ListBucket'], resources: [bucketArn] },
    ...(store.includes('create') ? [right('CreateObjects', ['s3:PutObject', 's3:AbortMultipartUpload'])] : []),
    ...(store.includes('delete') ? [right('DeleteObjects', ['s3:DeleteObject'])] : []),
  ]
}

/** Sinks whose target can keep no marker: theirs are objects of the store. */
const markedInStore: ReadonlySet<string> = new Set(['doris', 'write-ahead'])

/**
 * Plan gives lanes their base markers, promote moves them and drops those before; plan reads the refused rows recorded
 * with them, finalize forgets those, whatever the pipeline file says by then; the doctor looks.
 */
const movesMarkers: readonly FunctionName[] = ['plan', 'promote', 'finalize']

function markerRights(name: FunctionName, { bucketArn, description }: Subject): Right[] {
  if (name !== 'doctor' && !movesMarkers.includes(name)) return []
  const { pipeline } = description.topology
  const markers = description.sinks
    .filter(({ type }) => markedInStore.has(type))
    .map(({ id }) => `${bucketArn}/${markersPrefix(pipeline, id)}*`)
  if (markers.length === 0) return []
  const moves = ['s3:GetObject', 's3:PutObject', 's3:AbortMultipartUpload', 's3:DeleteObject']
  const actions = name === 'doctor' ? ['s3:GetObject'] : moves
  return [{ sid: 'StoreMarkers', actions, resources: markers }]
}

function intakeRights(name: FunctionName, { bucketArn, description, intake }: Subject): Right[] {
  const may = intake === 'event' ? (duties[name].intake ?? []) : []
  const resources = [`${bucketArn}/intake/${description.topology.pipeline}/*`]
  return [
    ...(may.includes('read') ? [{ sid: 'ReadIntake', actions: ['s3:GetObject'], resources }] : []),
    ...(may.includes('create')
      ? [{ sid: 'CreateIntake', actions: ['s3:PutObject', 's3:AbortMultipartUpload'], resources }]
      : []),
    ...(may.includes('delete') ? [{ sid: 'DeleteIntake', actions: ['s3:DeleteObject'], resources }] : []),
  ]
}

function launcherRights(name: FunctionName, { machineArn, executionsArn, workflow }: Subject): Right[] {
  if (!duties[name].rings) return []
  return [
    { sid: 'StartRuns', actions: ['states:StartExecution'], resources: [machineArn] },
    ...(workflow === 'express'
      ? []
      : [{ sid: 'SeeRuns', actions: ['states:DescribeExecution'], resources: [executionsArn] }]),
  ]
}

/** Looks at what it names; of quota and mappings Lambda knows no narrower resource. */
function doctorRights({ machineArn }: Subject): Right[] {
  return [
    { sid: 'SeeMachine', actions: ['states:DescribeStateMachine'], resources: [machineArn] },
    { sid: 'SeeLambda', actions: ['lambda:GetAccountSettings', 'lambda:ListEventSourceMappings'], resources: ['*'] },
  ]
}

/** A function in a VPC makes its own network interface; EC2 knows no narrower resource for these. */
function networkRights(name: FunctionName, { source, mapped, inVpc }: Subject): Right[] {
  if (source.vpc === undefined) return []
  const actions = ['ec2:CreateNetworkInterface', 'ec2:DeleteNetworkInterface', 'ec2:DescribeNetworkInterfaces']
  const looks = ['ec2:DescribeSecurityGroups', 'ec2:DescribeSubnets', 'ec2:DescribeVpcs']
  const right: Right = { sid: 'Network', actions, resources: ['*'] }
  const maps = name === 'trigger' && mapped
  // The network of the mapping is made in the name of the function, wherever that is itself.
  return [
    ...(inVpc(name) || maps ? [right] : []),
    ...(maps ? [{ sid: 'MappingNetwork', actions: looks, resources: ['*'] }] : []),
  ]
}
