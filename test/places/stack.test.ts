import { expect, test } from 'vitest'
import { deploymentsOf } from '../../lib/places/stack.ts'

const outputs = (entries: Readonly<Record<string, string>>) => new Map(Object.entries(entries))

test('finds each pipeline of a stack by the outputs of its construct, beside outputs of others', () => {
  const found = deploymentsOf(
    outputs({
      WordCountPipelineD10710CA: 'word-count',
      WordCountStageName73F4F0C7: 'dev',
      WordCountBucketNameC29EF66F: 'bucket-1',
      WordCountTableName10DAF7A1: 'table-1',
      WordCountTriggerNameF10719FE: 'trigger-1',
      WordCountStateMachineArn1A2B3C4D: 'machine-1',
      WordCountWorkflow5E6F7A8B: 'express',
      NestedOrdersPipeline00000000: 'orders',
      NestedOrdersStageName00000001: 'prod',
      NestedOrdersBucketName00000002: 'bucket-2',
      NestedOrdersTableName00000003: 'table-2',
      ServiceUrl: 'https://example.org',
      LonelyBucketName00000004: 'of somebody else',
    }),
  )
  expect(found).toEqual([
    {
      ...{ pipeline: 'word-count', stage: 'dev', bucket: 'bucket-1', table: 'table-1' },
      ...{ stateMachineArn: 'machine-1', workflow: 'express', trigger: 'trigger-1', doctor: null },
    },
    {
      ...{ pipeline: 'orders', stage: 'prod', bucket: 'bucket-2', table: 'table-2' },
      ...{ stateMachineArn: null, workflow: null, trigger: null, doctor: null },
    },
  ])
})

test('finds nothing in a stack without a pipeline', () => {
  expect(deploymentsOf(outputs({ ServiceUrl: 'https://example.org' }))).toEqual([])
})
