/**
 * What the functions of a stack wrote, and the alarms and saved queries that it was deployed with.
 *
 * Read from the emulator's own APIs; CloudWatch Logs by its plain protocol, since nothing else here needs its client.
 */
import { CloudFormationClient, DescribeStackResourcesCommand, GetTemplateCommand } from '@aws-sdk/client-cloudformation'
import type { AlarmProps } from './alarm-state.ts'
import type { EmulatorClientOptions } from './aws-emulator.ts'

/** A stack as a person who is on call sees it. */
export interface DeployedWatch {
  /** By name, as in `Stalled`. */
  readonly alarms: readonly (readonly [name: string, alarm: AlarmProps])[]
  readonly queries: readonly { readonly name: string; readonly text: string }[]
  /** JSON of the dashboard with references left out. */
  readonly dashboard: string
  /** Name of a function, as in `Operate`. */
  functionName(name: string): string
  /** Lines of all functions since the last time this was asked, in JSON alone. */
  newLines(): Promise<readonly string[]>
}

interface Resource {
  readonly Type: string
  readonly Properties: Readonly<Record<string, unknown>>
}

/** Looks at a stack that is deployed. */
export async function watchStack(client: EmulatorClientOptions, stack: string): Promise<DeployedWatch> {
  const formation = new CloudFormationClient(client)
  const { TemplateBody = '{}' } = await formation.send(new GetTemplateCommand({ StackName: stack }))
  const { StackResources = [] } = await formation.send(new DescribeStackResourcesCommand({ StackName: stack }))
  formation.destroy()
  const { Resources } = JSON.parse(TemplateBody) as { Resources: Record<string, Resource> }
  const of = (type: string) => Object.entries(Resources).filter(([, { Type }]) => Type === type)
  const groups = StackResources.filter(({ ResourceType }) => ResourceType === 'AWS::Logs::LogGroup')
  const seen = new Set<string>()
  return {
    alarms: of('AWS::CloudWatch::Alarm').map(([id, { Properties }]) => {
      return [/Observability([A-Z]\w+?)[0-9A-F]{8}$/.exec(id)![1], Properties as AlarmProps] as const
    }),
    queries: of('AWS::Logs::QueryDefinition').map(([, { Properties }]) => {
      return { name: String(Properties.Name), text: String(Properties.QueryString) }
    }),
    dashboard: of('AWS::CloudWatch::Dashboard')
      .map(([, { Properties }]) => JSON.stringify(Properties.DashboardBody))
      .join(),
    functionName: (name) =>
      StackResources.find(({ LogicalResourceId = '', ResourceType }) => {
        return ResourceType === 'AWS::Lambda::Function' && LogicalResourceId.includes(`Functions${name}Function`)
      })?.PhysicalResourceId ?? '',
    async newLines() {
      const pages = await Promise.all(
        groups.map(({ PhysicalResourceId = '' }) => linesOf(client.endpoint, PhysicalResourceId)),
      )
      const fresh = pages.flat().filter(({ eventId }) => !seen.has(eventId))
      for (const { eventId } of fresh) seen.add(eventId)
      return fresh.flatMap(({ message }) => message.split('\n')).filter((line) => line.startsWith('{'))
    },
  }
}

interface LogEvent {
  readonly eventId: string
  readonly message: string
}

async function linesOf(endpoint: string, logGroupName: string): Promise<LogEvent[]> {
  const events: LogEvent[] = []
  let nextToken: string | undefined
  do {
    const answer = await fetch(endpoint, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.1',
        'x-amz-target': 'Logs_20140328.FilterLogEvents',
        authorization:
          'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/logs/aws4_request, SignedHeaders=host, Signature=0',
      },
      body: JSON.stringify({ logGroupName, limit: 10_000, nextToken }),
    })
    if (!answer.ok) throw new Error(`the logs of ${logGroupName}: ${answer.status} ${await answer.text()}`)
    const page = (await answer.json()) as { events?: (LogEvent & { logStreamName?: string })[]; nextToken?: string }
    for (const { eventId, logStreamName, message } of page.events ?? [])
      events.push({ eventId: `${logGroupName}/${logStreamName}/${eventId}`, message })
    nextToken = page.nextToken
  } while (nextToken !== undefined)
  return events
}
