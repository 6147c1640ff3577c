/**
 * What each function may do with tables and buckets that sinks write to.
 *
 * A spec declares its resources; only steps that touch them get a right, and for markers of DynamoDB the right ends at
 * their keys. Who brings a key of KMS of their own grants it themselves, from `functions.promote` and the others.
 */
import { type DynamoLane, markerText, refusedText } from '../lib/adapters/dynamodb/sink-form.ts'
import type { AwsResource, BucketResource, SecretResource, TableResource } from '../lib/model/resources.ts'
import type { FunctionName } from './function-names.ts'
import type { Right, Subject } from './right.ts'

/** Why a resource has a star in it, by the statement that has it, without its number. */
export const sinkWildcards: Readonly<Record<string, string>> = {
  StoreMarkers: 'Markers of this sink alone, a lane each.',
  SinkMarkers: 'Markers of this pipeline alone, a lane each.',
  StageFiles: 'Files of this sink alone; their names are made as they are written.',
  WriteFiles: 'Files of this sink alone; their names are made as they are written.',
  ForgetUploads: 'Uploads of this sink alone; their names are made as they are written.',
}

/** Rights at what the sinks of the pipeline declare; statements of a policy need different names, so they are numbered. */
export function sinkRights(name: FunctionName, subject: Subject): Right[] {
  const declared = subject.description.sinks.flatMap(({ id, type, resources = [] }) =>
    resources.map((resource) => ({ id, type, resource })),
  )
  return declared.flatMap(({ id, type, resource }, index) => {
    const rights = rightsAt(name, subject, { id, type }, resource)
    return rights.map((right) => ({ ...right, sid: `${right.sid}${index + 1}` }))
  })
}

function rightsAt(
  name: FunctionName,
  subject: Subject,
  sink: { readonly id: string; readonly type: string },
  resource: AwsResource,
): Right[] {
  switch (resource.of) {
    case 'dynamodb':
      return tableRights(name, subject, sink.id, resource)
    case 's3':
      return bucketRights(name, subject, resource)
    case 'secretsmanager':
      return secretRights(name, sink.type, resource)
  }
}

/** Of those that connect to a sink: for markers, for rows, to forget refused rows, to look at markers. */
const connects: readonly FunctionName[] = ['plan', 'promote', 'finalize', 'doctor']
/** Doris prepares in operate, and gives up what was prepared. */
const prepares: readonly FunctionName[] = ['promote', 'operate', 'abort']

/** A secret under a key of your own needs that key's grant as well. */
function secretRights(name: FunctionName, type: string, { secretArn }: SecretResource): Right[] {
  if (!(type === 'doris' ? prepares : connects).includes(name)) return []
  return [{ sid: 'SinkSecret', actions: ['secretsmanager:GetSecretValue'], resources: [secretArn] }]
}

function tableRights(name: FunctionName, subject: Subject, sink: string, resource: TableResource): Right[] {
  const { partition, region, account } = subject.home
  const { table, markerTable, refusedTable = null, keyType, deletes } = resource
  const arn = (of: string) => `arn:${partition}:dynamodb:${resource.region ?? region}:${account}:table/${of}`
  const leading = (sid: string, of: string, actions: readonly string[], text: (lane: DynamoLane) => string): Right => {
    const keys = laneKeys(subject, sink, text)
    const conditions = { 'ForAllValues:StringEquals': { 'dynamodb:LeadingKeys': keys } }
    return { sid, actions, resources: [arn(of)], conditions }
  }
  const markers = (sid: string, actions: readonly string[]): Right => {
    if (markerTable === null && keyType !== 'S') return { sid, actions, resources: [arn(table)] }
    return leading(sid, markerTable ?? table, actions, markerText)
  }
  const refused = (sid: string, ...actions: string[]): Right[] =>
    refusedTable === null ? [] : [leading(sid, refusedTable, actions, refusedText)]
  switch (name) {
    case 'plan':
      return [
        markers('MakeMarkers', ['dynamodb:GetItem', 'dynamodb:PutItem']),
        ...refused('ReadRefused', 'dynamodb:Query'),
      ]
    case 'promote':
      return [
        { sid: 'WriteItems', actions: itemActions(refusedTable !== null, deletes), resources: [arn(table)] },
        markers('MoveMarkers', markerTable === null ? ['dynamodb:GetItem'] : ['dynamodb:GetItem', 'dynamodb:PutItem']),
        ...refused('RecordRefused', 'dynamodb:Query', 'dynamodb:PutItem'),
      ]
    case 'finalize':
      return refused('ForgetRefused', 'dynamodb:UpdateItem', 'dynamodb:DeleteItem')
    case 'doctor':
      return [markers('SeeMarkers', ['dynamodb:GetItem'])]
    default:
      return []
  }
}

/** An item whose row is refused is looked at, and marked where it has a guard. */
function itemActions(refuses: boolean, deletes: boolean): string[] {
  const more = deletes ? [] : ['dynamodb:UpdateItem']
  return [
    'dynamodb:PutItem',
    ...(deletes ? ['dynamodb:DeleteItem'] : []),
    ...(refuses ? ['dynamodb:GetItem', ...more] : []),
  ]
}

function laneKeys({ stageName, description }: Subject, sink: string, text: (lane: DynamoLane) => string): string[] {
  const { pipeline, nodes } = description.topology
  const node = nodes.find(({ id }) => id === sink)
  const lanes = node?.kind === 'sink' ? node.lanes : 0
  return Array.from({ length: lanes }, (_, lane) => text({ stage: stageName, pipeline, sink, lane }))
}

function bucketRights(name: FunctionName, { home }: Subject, { bucket, prefix, markers }: BucketResource): Right[] {
  const arn = `arn:${home.partition}:s3:::${bucket}`
  const right = (sid: string, actions: readonly string[], resource: string): Right => {
    return { sid, actions, resources: [resource] }
  }
  const files = `${arn}/${prefix}*`
  // Without it a missing object looks like a forbidden one.
  const tell = right('TellMissingFiles', ['s3:ListBucket'], arn)
  const forget = right('ForgetUploads', ['s3:AbortMultipartUpload'], files)
  switch (name) {
    case 'plan':
      return [tell, right('SinkMarkers', ['s3:GetObject', 's3:PutObject'], `${arn}/${markers}*`)]
    case 'operate':
      return [right('StageFiles', ['s3:PutObject', 's3:AbortMultipartUpload'], files)]
    case 'promote':
      return [tell, right('WriteFiles', ['s3:GetObject', 's3:PutObject', 's3:AbortMultipartUpload'], files)]
    case 'abort':
      return [forget]
    case 'finalize':
    case 'collect':
      return [right('ListUploads', ['s3:ListBucketMultipartUploads'], arn), forget]
    case 'doctor':
      return [tell, right('SinkMarkers', ['s3:GetObject'], `${arn}/${markers}*`)]
    default:
      return []
  }
}
