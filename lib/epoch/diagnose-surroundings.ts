/**
 * Diagnose the services around a deployment: clocks, secret, state machine, mappings, concurrency.
 *
 * Reads:  settings of services. Writes: nothing.
 * Safe to repeat because: it only reads.
 */
import { limits } from '../model/limits.ts'
import type { MappingState, ServerTime, Surroundings } from '../ports/surroundings.ts'
import { broken, type Finding, ill, well } from './finding.ts'
import type { Job } from './job.ts'
import { machine, type StepName, stepNames, taskStates } from './machine.ts'

/** Beyond this, timers and intervals are visibly wrong; an answer tells the second only. */
const skewMsWarn = 3_000
/** AWS refuses signatures that are five minutes off. */
const skewMsFail = 240_000

/** One finding a check; none throws. */
export async function diagnoseSurroundings(job: Job, surroundings: Surroundings): Promise<Finding[]> {
  const { readSecret } = surroundings
  const tried = async (check: string, look: () => Promise<Finding | Finding[]>, isNeeded = true) => {
    try {
      return await look()
    } catch (error) {
      const found = broken(check, error)
      if (isNeeded || found.code !== 'LAUNCHER_UNAVAILABLE') return found
      // The pipeline itself never asks Lambda: a network without an endpoint for it is none of its faults.
      return ill(
        check,
        'warn',
        found.text,
        'add an endpoint for Lambda to the network, if this is to be seen',
        found.code,
      )
    }
  }
  const findings = await Promise.all([
    tried('clock', async () => (await surroundings.serverTimes()).map(clockFinding)),
    ...(readSecret === null ? [] : [tried('secret', async () => secretFinding(await readSecret()))]),
    tried('state machine', async () => machineFinding(job, await surroundings.definition(), surroundings.workflow)),
    tried('mapping', async () => mappingFindings(await surroundings.mappings()), false),
    tried('concurrency', async () => concurrencyFinding(job, await surroundings.concurrency()), false),
  ])
  return findings.flat()
}

function clockFinding({ server, atMs, hereMs }: ServerTime): Finding {
  // The header is cut to the second.
  const skewMs = Math.abs(atMs + 500 - hereMs)
  const text = `the clock here and that of ${server} differ by ${(skewMs / 1000).toFixed(1)} s`
  if (skewMs < skewMsWarn) return well('clock', text)
  const mend =
    'set the clock by NTP: timers, intervals and idle partitions go by it; AWS refuses signatures five minutes off'
  return ill('clock', skewMs < skewMsFail ? 'warn' : 'fail', text, mend)
}

const secretFinding = (_: unknown) => well('secret', 'user and password of the brokers can be read')

/** The document is compared with the one that this build makes; the functions that it calls are its own matter. */
function machineFinding({ compiled }: Job, definition: string | null, workflow: Surroundings['workflow']): Finding {
  const check = 'state machine'
  if (definition === null)
    return ill(check, 'fail', 'it does not exist', 'deploy the stack again', 'AWS_RESOURCE_MISSING')
  const deployed = JSON.parse(definition) as unknown
  const found = resourcesOf(deployed)
  const resources = Object.fromEntries(stepNames.map((step) => [step, found.get(taskStates[step]) ?? ''])) as Record<
    StepName,
    string
  >
  const own: unknown = JSON.parse(JSON.stringify(machine({ resources, settings: compiled.settings, workflow })))
  if (sorted(own) === sorted(deployed)) return well(check, `it is of this build and calls ${versionsOf(resources)}`)
  const mend = 'deploy the stack again, and change nothing by hand'
  return ill(check, 'warn', 'its definition is of another build than its functions', mend)
}

/** Resource of each Task state, wherever it stands. */
function resourcesOf(value: unknown, name = '', found = new Map<string, string>()): Map<string, string> {
  if (typeof value !== 'object' || value === null) return found
  const { Type, Resource } = value as { Type?: unknown; Resource?: unknown }
  if (Type === 'Task' && typeof Resource === 'string') found.set(name, Resource)
  for (const [key, inner] of Object.entries(value)) resourcesOf(inner, key, found)
  return found
}

function versionsOf(resources: Readonly<Record<StepName, string>>): string {
  const versions = new Set(Object.values(resources).map((resource) => resource.split(':').at(-1) ?? ''))
  return `version ${[...versions].sort().join(', ')} of its functions`
}

function sorted(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

function mappingFindings(mappings: readonly MappingState[] | null): Finding[] {
  if (mappings === null) return [well('mapping', 'there is none: the schedule wakes the pipeline')]
  return mappings.map(({ topics, state, result }) => {
    const check = `mapping ${topics.join(', ')}`
    if (!['Enabled', 'Enabling', 'Creating', 'Updating'].includes(state))
      return ill(
        check,
        'fail',
        `it is ${state}: only the schedule wakes the pipeline`,
        'enable the event source mapping, or deploy again',
      )
    if (result !== null && /^PROBLEM/i.test(result))
      return ill(
        check,
        'fail',
        `it reads nothing: ${result}`,
        'mend the network, the rights or the secret that Lambda names',
      )
    return well(check, `it is ${state}`)
  })
}

/** As many tasks as there are shards run at once, and a lane each; beside them a trigger and a step. */
function concurrencyFinding(
  { compiled }: Job,
  { account, unreserved }: { account: number; unreserved: number },
): Finding {
  const lanes = Object.values(compiled.sinks).reduce((sum, spec) => sum + spec.lanes, 0)
  const wanted = Math.min(limits.mapConcurrencyMax, Math.max(compiled.settings.shards, lanes)) + 2
  const text = `${unreserved} of ${account} calls at once are unreserved, an epoch makes up to ${wanted}`
  if (unreserved >= wanted) return well('concurrency', text)
  const mend = 'raise the Lambda quota "Concurrent executions", or release reserved concurrency'
  return ill('concurrency', unreserved < 2 ? 'fail' : 'warn', text, mend)
}
