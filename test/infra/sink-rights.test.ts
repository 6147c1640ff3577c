import { AwsSolutionsChecks } from 'cdk-nag'
import { expect, test } from 'vitest'
import { functionNames } from '../../infra/function-names.ts'
import { sinkWildcards } from '../../infra/sink-rights.ts'
import { deploy, policyOf } from './deployment.ts'

const entry = new URL('../support/deployed-pipelines/object-sinks.ts', import.meta.url).pathname
const deployment = deploy(() => ({ entry }))
const nameOf = (name: string) => name[0]!.toUpperCase() + name.slice(1)
const sinkSids = [
  ...Object.keys(sinkWildcards),
  'MakeMarkers',
  'SeeMarkers',
  'WriteItems',
  'MoveMarkers',
  'ReadRefused',
  'RecordRefused',
  'ForgetRefused',
  'TellMissingFiles',
  'ListUploads',
  'SinkSecret',
]

/** What each function may do with the sinks' tables and buckets, by heart: a change here is a decision. */
const marker = (sink: string, lane: number) => `pawl#marker#test#object-sinks#${sink}#${lane}`
const leading = (keys: string) => `if ForAllValues:StringEquals dynamodb:LeadingKeys ${keys}`
const lanes = `${marker('totals', 0)} ${marker('totals', 1)}`
const waiting = (sink: string, lane: number) => `pawl#refused#test#object-sinks#${sink}#${lane}`
const refused = (table: string, ...keys: string[]) => `on dynamodb:table/${table} ${leading(keys.join(' '))}`
const refusedTotals = refused('pawl_refused', waiting('totals', 0), waiting('totals', 1))
const refusedLatest = refused('latest-refused', waiting('latest', 0))
const uploads = [
  'ListUploads3: s3:ListBucketMultipartUploads on s3:::lake',
  'ForgetUploads3: s3:AbortMultipartUpload on s3:::lake/lines/*',
]
const secret =
  'SinkSecret5: secretsmanager:GetSecretValue on arn:aws:secretsmanager:eu-central-1:111122223333:secret:database'
const rights: Readonly<Record<string, readonly string[]>> = {
  plan: [
    `MakeMarkers1: dynamodb:GetItem dynamodb:PutItem on dynamodb:table/totals ${leading(lanes)}`,
    `ReadRefused1: dynamodb:Query ${refusedTotals}`,
    `MakeMarkers2: dynamodb:GetItem dynamodb:PutItem on dynamodb:table/markers ${leading(marker('latest', 0))}`,
    `ReadRefused2: dynamodb:Query ${refusedLatest}`,
    'TellMissingFiles3: s3:ListBucket on s3:::lake',
    'SinkMarkers3: s3:GetObject s3:PutObject on s3:::lake/lines/_pawl/*',
    `MakeMarkers4: dynamodb:GetItem dynamodb:PutItem on dynamodb:table/plain ${leading(marker('plain', 0))}`,
    secret,
  ],
  operate: ['StageFiles3: s3:PutObject s3:AbortMultipartUpload on s3:::lake/lines/*'],
  abort: ['ForgetUploads3: s3:AbortMultipartUpload on s3:::lake/lines/*'],
  finalize: [
    `ForgetRefused1: dynamodb:UpdateItem dynamodb:DeleteItem ${refusedTotals}`,
    `ForgetRefused2: dynamodb:UpdateItem dynamodb:DeleteItem ${refusedLatest}`,
    ...uploads,
    secret,
  ],
  collect: uploads,
  doctor: [
    `SeeMarkers1: dynamodb:GetItem on dynamodb:table/totals ${leading(lanes)}`,
    `SeeMarkers2: dynamodb:GetItem on dynamodb:table/markers ${leading(marker('latest', 0))}`,
    'TellMissingFiles3: s3:ListBucket on s3:::lake',
    'SinkMarkers3: s3:GetObject on s3:::lake/lines/_pawl/*',
    `SeeMarkers4: dynamodb:GetItem on dynamodb:table/plain ${leading(marker('plain', 0))}`,
    secret,
  ],
  promote: [
    'WriteItems1: dynamodb:PutItem dynamodb:GetItem dynamodb:UpdateItem on dynamodb:table/totals',
    `MoveMarkers1: dynamodb:GetItem on dynamodb:table/totals ${leading(lanes)}`,
    `RecordRefused1: dynamodb:Query dynamodb:PutItem ${refusedTotals}`,
    'WriteItems2: dynamodb:PutItem dynamodb:DeleteItem dynamodb:GetItem on dynamodb:table/latest',
    `MoveMarkers2: dynamodb:GetItem dynamodb:PutItem on dynamodb:table/markers ${leading(marker('latest', 0))}`,
    `RecordRefused2: dynamodb:Query dynamodb:PutItem ${refusedLatest}`,
    'TellMissingFiles3: s3:ListBucket on s3:::lake',
    'WriteFiles3: s3:GetObject s3:PutObject s3:AbortMultipartUpload on s3:::lake/lines/*',
    'WriteItems4: dynamodb:PutItem on dynamodb:table/plain',
    `MoveMarkers4: dynamodb:GetItem on dynamodb:table/plain ${leading(marker('plain', 0))}`,
    secret,
  ],
}

const deployed = functionNames.filter((name) => name !== 'recover')

test.each(deployed)('the role of %s may do with tables and buckets of sinks what its duty needs', (name) => {
  const mine = policyOf(deployment, nameOf(name))
    .map((line) => line.replace('arn:<AWS::Partition>:', '').replace('<AWS::Region>:<AWS::AccountId>:', ''))
    .filter((line) => sinkSids.includes(line.split(/\d*:/)[0]!))
  expect(mine).toEqual(rights[name] ?? [])
})

test('cdk-nag finds no star without a reason', () => {
  const { violations } = new AwsSolutionsChecks(deployment.app).validateScope(deployment.app)
  const found = violations.filter(({ ruleName }) => ruleName.includes('IAM5'))
  expect(found.map(({ ruleName, violatingResources }) => [ruleName, violatingResources[0]!.constructPath])).toEqual([])
})

test('statements of a policy have names of their own', () => {
  for (const name of deployed) {
    const sids = policyOf(deployment, nameOf(name)).map((line) => line.split(':')[0])
    expect(new Set(sids).size).toBe(sids.length)
  }
})
