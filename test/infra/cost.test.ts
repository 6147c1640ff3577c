import { expect, test } from 'vitest'
import { fixedOfDeployment } from '../../lib/cli/estimate-cost.ts'
import { deploy } from './deployment.ts'

test('pawl cost knows how many alarms, dashboards and endpoints a deployment has', () => {
  const { all } = deploy()
  const endpoints = Object.values(all('AWS::EC2::VPCEndpoint')) as { Properties: { VpcEndpointType?: string } }[]
  expect({
    alarms: Object.keys(all('AWS::CloudWatch::Alarm')).length,
    dashboards: Object.keys(all('AWS::CloudWatch::Dashboard')).length,
  }).toEqual(fixedOfDeployment)
  // As `pawl cost --help` says of vpcEndpoints: create.
  expect(endpoints.filter(({ Properties }) => Properties.VpcEndpointType === 'Interface').length).toBe(3)
  expect(Object.keys(all('AWS::Events::Rule')).length).toBe(3)
})
