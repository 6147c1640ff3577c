import { App, Stack } from 'aws-cdk-lib'
import { Secret } from 'aws-cdk-lib/aws-secretsmanager'
import { expect, test } from 'vitest'
import { ExactlyOncePipeline, type ExactlyOncePipelineProps } from '../../infra/exactly-once-pipeline.ts'
import { type Description, describePipeline } from '../../infra/topology.ts'
import { mistakesOf, settingsOf } from '../../infra/validate.ts'
import type { Settings } from '../../lib/model/settings.ts'
import { clusterArn, entry, networkOf } from './deployment.ts'

const described = describePipeline(entry)
const stack = new Stack(new App(), 'Stack')
const network = networkOf(stack)
const secret = Secret.fromSecretNameV2(stack, 'Secret', 'AmazonMSK_words')
const bootstrapServers = 'a:9092'
const none = { type: 'none' } as const

type Source = ExactlyOncePipelineProps['source']

const sound: ExactlyOncePipelineProps = { entry, stageName: 'test', source: { bootstrapServers, authentication: none } }
const withSource = (source: Partial<Source>) =>
  mistakesOf({ ...sound, source: { ...sound.source, ...source } }, described)
const withSettings = (settings: Partial<Settings>, description: Description = described) =>
  mistakesOf(sound, { ...description, settings: { ...description.settings, ...settings } })

test('five minutes of an Express execution must hold an epoch, and the lease that others watch', () => {
  const express = { ...sound, workflow: 'express' } as const
  expect(mistakesOf(express, described)).toEqual([])
  const settings = (leaseMs: number, timeoutMs: number): Description => ({
    ...described,
    settings: { ...described.settings, leaseMs, checkpoint: { ...described.settings.checkpoint, timeoutMs } },
  })
  expect(mistakesOf(express, settings(270_000, 100_000))).toEqual([])
  expect(mistakesOf(express, settings(280_000, 100_000))).toEqual([expect.stringContaining('leaseMs (280000)')])
  expect(mistakesOf(express, settings(600_000, 250_000))).toEqual([
    expect.stringContaining('checkpoint.timeoutMs (250000) is beyond 240000'),
    expect.stringContaining('leaseMs (600000) is beyond 270000'),
  ])
  expect(settingsOf(described, express).runMsMax).toBe(300_000 - 30_000 - described.settings.checkpoint.timeoutMs)
  expect(settingsOf(described, sound).runMsMax).toBeNull()
})

test('an intake of events refuses what an event does not say', () => {
  const source = { ...described.sources[0]!, isolation: 'read_uncommitted', start: 'earliest' } as const
  const mistakes = (more: Partial<Description['sources'][number]>, props: Partial<ExactlyOncePipelineProps> = {}) =>
    mistakesOf({ ...sound, intake: 'event', ...props }, { ...described, sources: [{ ...source, ...more }] })
  expect(mistakes({})).toEqual([])
  expect(mistakes({ start: 'timestamp' })).toEqual([])
  expect(mistakes({ isolation: 'read_committed', ownCluster: true })).toEqual([])
  for (const [more, fault] of [
    [{ isolation: 'read_committed' }, 'isolation read_committed'],
    [{ start: 'latest' }, 'start latest'],
    [{ group: 'g' }, 'group g'],
    [{ onLostOffsets: 'skip' }, 'onLostOffsets: skip'],
  ] as const)
    expect(mistakes(more)).toEqual([expect.stringContaining(`source lines: intake: event cannot have ${fault}`)])
  expect(mistakes({}, { trigger: 'schedule' })).toEqual([expect.stringContaining('needs the mapping')])
  expect(mistakes({}, { sinkNetwork: 'vpc' })).toEqual(['sinkNetwork: vpc needs source.vpc'])
  expect(mistakesOf({ ...sound, sinkNetwork: 'public' }, described)).toEqual(['sinkNetwork needs intake: event'])
  const twice = { ...described, sources: [source, { ...source, id: 'more' }] }
  expect(mistakesOf({ ...sound, intake: 'event' }, twice)).toEqual([expect.stringContaining('topic lines twice')])
})

test('a sound deployment has no mistakes', () => {
  expect(mistakesOf(sound, described)).toEqual([])
  const msk = { clusterArn, ...network, authentication: { type: 'iam' } } as const
  expect(mistakesOf({ ...sound, source: msk, vpcEndpoints: 'create' }, described)).toEqual([])
})

const badSources: readonly (readonly [string, Partial<Source>, string])[] = [
  ['SCRAM without a secret', { authentication: { type: 'scram-sha-512' } as never }, 'scram-sha-512 needs a secret'],
  ['a secret that nothing asks for', { authentication: { type: 'tls', secret } as never }, 'tls takes no secret'],
  ['IAM outside of MSK', { authentication: { type: 'iam' } }, 'iam needs clusterArn'],
  ['PLAIN at MSK', { clusterArn, ...network, authentication: { type: 'plain', secret } }, 'plain is not known to MSK'],
  ['no brokers at all', { bootstrapServers: undefined as never }, 'neither clusterArn nor bootstrapServers'],
  ['MSK without a VPC', { clusterArn }, 'source.vpc is missing'],
  ['a VPC without security groups', { vpc: network.vpc }, 'source.securityGroups is empty'],
  ['security groups without a VPC', { securityGroups: network.securityGroups }, 'need source.vpc'],
  [
    'plain sockets with TLS',
    { encrypted: false, authentication: { type: 'tls' } },
    'contradicts source.authentication tls',
  ],
  [
    'transactions that outlive a promotion',
    { transactionTimeoutMs: 120_000 },
    'exceeds what leaseMs leaves a promotion (74000)',
  ],
]

test.each(badSources)('refuses %s', (_, source, mistake) => {
  expect(withSource(source)).toEqual([expect.stringContaining(mistake)])
})

const { checkpoint } = described.settings
const badSettings: readonly (readonly [string, Partial<Settings>, string])[] = [
  [
    'a checkpoint beyond a function',
    { leaseMs: 3_600_000, checkpoint: { ...checkpoint, timeoutMs: 900_000 } },
    "a function's limit of 895000",
  ],
  [
    'a checkpoint beyond half the lease',
    { checkpoint: { ...checkpoint, timeoutMs: 80_000 } },
    'must be below half of leaseMs (150000)',
  ],
  ['more tasks than a Map runs at once', { shards: 41 }, '41 tasks a stage (shards): a Map runs at most 40'],
]

test.each(badSettings)('refuses %s', (_, settings, mistake) => {
  expect(withSettings(settings)).toEqual([expect.stringContaining(mistake)])
})

test('refuses a lease that leaves a step no time', () => {
  const mistakes = withSettings({ leaseMs: 10_000, checkpoint: { ...checkpoint, timeoutMs: 4000 } })
  expect(mistakes[0]).toBe('leaseMs (10000) leaves a step 4000 ms: deployed it needs at least 22000')
})

test('refuses what the deployment itself makes of the checkpoint', () => {
  const mistakes = mistakesOf({ ...sound, checkpoint: { timeoutMs: 80_000 } }, described)
  expect(mistakes).toEqual([expect.stringContaining('must be below half of leaseMs')])
})

test('refuses stage names that break ids in shared clusters', () => {
  const names = ['Dev', 'a_b', '', '-a', 'x'.repeat(70)]
  expect(names.map((stageName) => mistakesOf({ ...sound, stageName }, described).length)).toEqual([1, 1, 1, 1, 1])
})

test('refuses endpoints without a VPC, and a batch window without a mapping', () => {
  expect(mistakesOf({ ...sound, vpcEndpoints: 'create' }, described)).toEqual(['vpcEndpoints needs source.vpc'])
  const scheduled = { ...sound, trigger: 'schedule', batchWindow: {} as never } as const
  expect(mistakesOf(scheduled, described)).toEqual([expect.stringContaining('batchWindow')])
})

test('refuses a sink that writes files', () => {
  const description = { ...described, sinks: [{ id: 'out', type: 'files', topics: [], ownCluster: false }] }
  expect(mistakesOf(sound, description)).toEqual([expect.stringContaining('sink out writes files')])
})

test('the construct throws one error with a code that lists every mistake', () => {
  const props = { ...sound, stageName: 'Dev', source: { authentication: none } }
  expect(() => new ExactlyOncePipeline(stack, 'Bad', props)).toThrow(
    expect.objectContaining({
      code: 'DEPLOYMENT_INVALID',
      message: expect.stringMatching(/stageName "Dev".*; .*clusterArn/),
    }),
  )
})
