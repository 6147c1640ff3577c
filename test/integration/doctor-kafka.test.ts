/**
 * The doctor at a real broker that has been set up wrongly, one fault at a time.
 */
import {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  ConfigResourceTypes,
  ResourcePatternTypes,
} from 'kafkajs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Finding } from '../../lib/epoch/diagnose.ts'
import { type Project, project, succeed } from '../cli/command.ts'
import { type Broker, missingTool, startBroker } from '../support/kafka-broker.ts'
import { asAdmin, send } from '../support/kafka-topics.ts'

const pipelineFile = `
import { json, pipeline, text, topic } from 'pawl'
export default pipeline('count', { checkpoint: { intervalMs: 0 } })
  .from(topic('lines', { value: text() }))
  .keyBy((word) => word)
  .count('counter')
  .to('counts', topic('counts', { key: text(), value: json<number>() }))
`
const control = 'pawl-control-dev-count-counts'
const dayMs = 86_400_000
const missing = missingTool()

let broker: Broker
let made: Project

interface Access {
  readonly bootstrap?: string
  readonly password?: string
}

/** What is not well, as the command says it. */
async function ills({ bootstrap = broker.bootstrap, password }: Access = {}): Promise<Record<string, string>> {
  const env: Record<string, string> =
    password === undefined ? {} : { PAWL_KAFKA_USERNAME: 'alice', PAWL_KAFKA_PASSWORD: password }
  const { code, stdout, stderr } = await made.pawl(['doctor', 'count.ts', '--bootstrap', bootstrap, '--json'], { env })
  expect(stderr).toBe('')
  const { failed, findings } = JSON.parse(stdout) as { failed: number; findings: Finding[] }
  expect(code).toBe(failed === 0 ? 0 : 1)
  const ill = findings.filter(({ level }) => level !== 'ok')
  return Object.fromEntries(ill.map(({ check, level, code: of, mend }) => [check, `${level} ${of}: ${mend}`]))
}

const configure = (name: string, configEntries: { name: string; value: string }[]) =>
  asAdmin(broker, (admin) =>
    admin.alterConfigs({ validateOnly: false, resources: [{ type: ConfigResourceTypes.TOPIC, name, configEntries }] }),
  )

const allow = (resourceName: string, operations: readonly AclOperationTypes[]) =>
  asAdmin(broker, (admin) =>
    admin.createAcls({
      acl: operations.map((operation) => ({
        resourceName,
        operation,
        resourceType: AclResourceTypes.TOPIC,
        resourcePatternType: ResourcePatternTypes.LITERAL,
        principal: 'User:alice',
        host: '*',
        permissionType: AclPermissionTypes.ALLOW,
      })),
    }),
  )

describe.skipIf(missing !== null)('a doctor at a broker', () => {
  beforeAll(async () => {
    const authorizer = 'org.apache.kafka.metadata.authorizer.StandardAuthorizer'
    broker = await startBroker({
      secure: true,
      properties: { 'authorizer.class.name': authorizer, 'super.users': 'User:ANONYMOUS' },
    })
    const topics = ['lines', 'counts'].map((topic) => ({ topic, numPartitions: 1 }))
    await asAdmin(broker, (admin) => admin.createTopics({ waitForLeaders: true, topics }))
    made = project({ 'count.ts': pipelineFile })
    await send(broker, 'lines', [{ value: 'ratchet' }])
    await succeed(made.pawl(['run', 'count.ts', '--bootstrap', broker.bootstrap, '--until', 'caught-up']))
  }, 60_000)

  afterAll(async () => {
    made?.[Symbol.dispose]()
    await broker?.remove()
  })

  test('finds a sound one well', async () => {
    expect(await ills()).toEqual({})
  })

  test('names a wrong address and a wrong password', async () => {
    const address = await ills({ bootstrap: '127.0.0.1:1' })
    expect(address['source lines']).toMatch(/^fail BROKER_UNREACHABLE: /)
    const password = await ills({ bootstrap: broker.sasl, password: 'guessed' })
    expect(password['source lines']).toMatch(/^fail AUTHENTICATION_FAILED: check user, password/)
  })

  test('names the rights that a principal lacks, one after another', async () => {
    const alice = { bootstrap: broker.sasl, password: broker.password }
    const none = await ills(alice)
    expect(none['source lines']).toBe('fail AUTHORIZATION_FAILED: grant the principal Describe and Read on topic lines')
    await allow('lines', [AclOperationTypes.READ])
    const reading = await ills(alice)
    expect(reading['source lines']).toBeUndefined()
    expect(reading['sink counts']).toBe(
      'fail AUTHORIZATION_FAILED: grant the principal Describe and Write on topic counts',
    )
    expect(reading['control topic of counts']).toMatch(/^fail AUTHORIZATION_FAILED: grant .* on topic pawl-control-/)
  })

  test('names a control topic whose markers are deleted by age', async () => {
    await configure(control, [{ name: 'cleanup.policy', value: 'delete' }])
    expect((await ills())['control topic of counts']).toMatch(/^fail CONTROL_TOPIC_INVALID: set cleanup.policy=compact/)
    await configure(control, [{ name: 'cleanup.policy', value: 'compact' }])
  })

  test('names unread input that is about to be deleted', async () => {
    await configure('lines', [{ name: 'retention.ms', value: String(4 * dayMs) }])
    await send(broker, 'lines', [{ value: 'old', timestamp: String(Date.now() - 3.9 * dayMs) }])
    expect(await ills()).toEqual({ 'retention of lines': expect.stringMatching(/^fail null: raise retention.ms/) })
    await succeed(made.pawl(['run', 'count.ts', '--bootstrap', broker.bootstrap, '--until', 'caught-up']))
    expect(await ills()).toEqual({})
  })

  test('names a topic and a marker that are gone', async () => {
    await asAdmin(broker, (admin) => admin.deleteTopics({ topics: ['counts', control] }))
    const gone = await ills()
    expect(gone['sink counts']).toMatch(/^fail TOPIC_MISSING: create counts/)
    expect(gone['control topic of counts']).toMatch(/^fail TOPIC_MISSING: /)
    expect(gone['lane counts/0']).toMatch(/^fail MARKER_MISSING: /)
  })
})
