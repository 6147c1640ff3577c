/**
 * An example app: the word count of `examples/`, deployed.
 *
 * Context, or the environment of the same name in capitals: `bootstrapServers` (required), `stageName`, `entry`, `intake`,
 * `workflow`.
 * Brokers are reached without credentials and from outside of any VPC, as on a person's own machine; a real
 * deployment names a VPC, security groups and an authentication, see docs/deployment.md.
 */
import { App, Stack } from 'aws-cdk-lib'
import { ExactlyOncePipeline } from './exactly-once-pipeline.ts'

const app = new App()
const context = (name: string, variable: string): string | undefined =>
  app.node.tryGetContext(name) ?? process.env[variable]
const bootstrapServers = context('bootstrapServers', 'BOOTSTRAP_SERVERS')
if (bootstrapServers === undefined) throw new Error('name the brokers: cdk deploy -c bootstrapServers=host:port')
const stageName = context('stageName', 'STAGE_NAME') ?? 'dev'
const intake = context('intake', 'INTAKE') === 'event' ? 'event' : 'brokers'

const workflow = context('workflow', 'WORKFLOW') === 'express' ? 'express' : 'standard'

const stack = new Stack(app, `pawl-word-count-${stageName}`)
new ExactlyOncePipeline(stack, 'WordCount', {
  entry: context('entry', 'ENTRY') ?? 'examples/word-count/pipeline.ts',
  stageName,
  intake,
  workflow,
  source: { bootstrapServers, authentication: { type: 'none' } },
})
