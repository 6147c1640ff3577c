import { expect, test } from 'vitest'
import { functionNames } from '../../infra/function-names.ts'
import type { Subject } from '../../infra/right.ts'
import { rightsOf } from '../../infra/rights.ts'

const subject = (type: string) =>
  ({
    bucketArn: 'bucket',
    tableArn: 'table',
    machineArn: 'machine',
    executionsArn: 'executions',
    logGroupArn: 'logs',
    stageName: 'test',
    description: {
      topology: { pipeline: 'p', nodes: [] },
      sources: [],
      sinks: [{ id: 'webhook', type, topics: [], ownCluster: false }],
    },
    source: { authentication: { type: 'none' } },
    mapped: false,
    intake: 'brokers',
  }) as unknown as Subject

const holders = (type: string) =>
  functionNames.filter((name) => rightsOf(name, subject(type)).some(({ sid }) => sid === 'StoreMarkers'))

test('only the steps that move markers may write those in the store, and only where a sink has them there', () => {
  for (const type of ['write-ahead', 'doris'])
    expect(holders(type).sort()).toEqual(['doctor', 'finalize', 'plan', 'promote'])
  expect(rightsOf('doctor', subject('write-ahead')).find(({ sid }) => sid === 'StoreMarkers')?.actions).toEqual([
    's3:GetObject',
  ])
  expect(holders('postgres')).toEqual([])
  // Plan reads refused rows, promote records them, finalize forgets them: an entry each, and notes that may be large.
  for (const name of ['plan', 'promote', 'finalize'] as const)
    expect(rightsOf(name, subject('write-ahead'))).toContainEqual({
      sid: 'StoreMarkers',
      actions: ['s3:GetObject', 's3:PutObject', 's3:AbortMultipartUpload', 's3:DeleteObject'],
      resources: ['bucket/markers/p/webhook/*'],
    })
})

test('only the steps that connect to Doris read its secret: refused rows lie in the store', () => {
  const withSecret = subject('doris')
  Object.assign(withSecret.description.sinks[0]!, { resources: [{ of: 'secretsmanager', secretArn: 'secret' }] })
  const readers = functionNames.filter((name) => rightsOf(name, withSecret).some(({ sid }) => sid === 'SinkSecret1'))
  expect(readers.sort()).toEqual(['abort', 'operate', 'promote'])
})
