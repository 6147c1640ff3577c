import { readFileSync } from 'node:fs'
import { App } from 'aws-cdk-lib'
import { Template } from 'aws-cdk-lib/assertions'
import { beforeAll, describe, expect, test } from 'vitest'
import { brokers, QuickStart } from '../../infra/quick-start.ts'
import { awsPrices, dollarsFor, monthHours } from '../../lib/model/aws-prices.ts'
import { entry } from './deployment.ts'

let template: Template
const count = (type: string, properties: object = {}) =>
  Object.keys(template.findResources(type, { Properties: properties })).length

beforeAll(() => {
  template = Template.fromStack(new QuickStart(new App(), 'first-hour', { entry, stageName: 'first' }))
}, 60_000)

describe('the quick start in an account', () => {
  test('has a cluster of its own, and no way out of its network', () => {
    expect(count('AWS::MSK::Cluster')).toBe(1)
    expect([count('AWS::EC2::NatGateway'), count('AWS::EC2::InternetGateway')]).toEqual([0, 0])
    const group = Object.values(template.findResources('AWS::EC2::SecurityGroupIngress'))
    expect(group.map(({ Properties: { FromPort } }) => FromPort as number).sort()).toEqual([443, 9098])
  })

  test('names topics, groups and transactional ids of a cluster that is yet to be made', () => {
    const text = JSON.stringify(template.findResources('AWS::IAM::Role'))
    for (const kind of ['topic', 'group', 'transactional-id'])
      expect(text).toContain(`{"Fn::Join":[":${kind}/",[{"Fn::Select":[0,{"Fn::Split":[":cluster/"`)
  })

  test('makes the topics before anything of the pipeline', () => {
    const [mapping] = Object.values(template.findResources('AWS::Lambda::EventSourceMapping'))
    const [trigger] = Object.keys(template.findResources('Custom::Trigger'))
    expect(mapping.DependsOn).toContain(trigger)
  })

  test('costs by the hour what docs/getting-started.md says', () => {
    const zones = 2
    const interfaces = count('AWS::EC2::VPCEndpoint', { VpcEndpointType: 'Interface' })
    const hour =
      zones * dollarsFor(awsPrices.brokerHour, 1) +
      dollarsFor(awsPrices.brokerStorageMonth, zones * brokers.volumeGb) / monthHours +
      dollarsFor(awsPrices.endpointHour, interfaces * zones)
    const page = readFileSync(new URL('../../docs/getting-started.md', import.meta.url), 'utf8')
    expect(page).toContain(`about $${hour.toFixed(2)} an hour`)
    expect(page).toContain(`${interfaces} interface endpoints in ${zones} zones`)
  })
})
