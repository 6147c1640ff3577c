/**
 * An example app: the word count of `examples/`, deployed.
 *
 * Context, or the environment of the same name in capitals: `bootstrapServers`, `stageName`, `entry` (several files,
 * separated by commas, are as many pipelines of one stack), `intake`, `workflow`. Brokers are reached without credentials and from outside of any VPC, as on a person's own machine; a real
 * deployment names a VPC, security groups and an authentication, see docs/deployment.md. With `-c quickStart=yes` the
 * stack is the one of docs/getting-started.md, with a cluster of its own unless brokers are named.
 */
import { App, Stack } from 'aws-cdk-lib'
import { ExactlyOncePipeline } from './exactly-once-pipeline.ts'
import { QuickStart } from './quick-start.ts'

const app = new App()
const context = (name: string, variable: string): string | undefined =>
  app.node.tryGetContext(name) ?? process.env[variable]
const bootstrapServers = context('bootstrapServers', 'BOOTSTRAP_SERVERS')
const stageName = context('stageName', 'STAGE_NAME') ?? 'dev'
const entry = context('entry', 'ENTRY') ?? 'examples/word-count/pipeline.ts'
const intake = context('intake', 'INTAKE') === 'event' ? 'event' : 'brokers'
const workflow = context('workflow', 'WORKFLOW') === 'express' ? 'express' : 'standard'

if (context('quickStart', 'QUICK_START') !== undefined) {
  new QuickStart(app, `pawl-quick-start-${stageName}`, {
    entry,
    stageName,
    ...(bootstrapServers === undefined ? {} : { bootstrapServers }),
  })
} else {
  if (bootstrapServers === undefined) throw new Error('name the brokers: cdk deploy -c bootstrapServers=host:port')
  const stack = new Stack(app, `pawl-word-count-${stageName}`)
  const source = { bootstrapServers, authentication: { type: 'none' } as const }
  for (const [at, file] of entry.split(',').entries()) {
    const id = at === 0 ? 'WordCount' : `Beside${at}`
    new ExactlyOncePipeline(stack, id, { entry: file, stageName, intake, workflow, source })
  }
}
