/**
 * `pawl diff FILE`: what a deployment of the file would do to what runs, before it is deployed.
 *
 * The judgement is that of the engine (`epoch/compare.ts`): what is `refused` here would park the pipeline.
 */
import { type Change, compare, type Deployed } from '../epoch/compare.ts'
import { unseal } from '../epoch/seal.ts'
import { errorRegistry, isPawlError } from '../model/errors.ts'
import type { Manifest } from '../model/manifest.ts'
import { type OpenedPipeline, withPipeline } from './open-directory.ts'
import { type Call, type Command, placeOptions } from './parse-arguments.ts'
import { table } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import { stateOf } from './report-status.ts'
import { styled } from './write-output.ts'

/** `pawl diff FILE`. */
export const diffCommand: Command = {
  name: 'diff',
  summary: 'say what a deployment of the file would keep, add, drop or be refused for',
  positionals: ['FILE'],
  options: { ...placeOptions, export: { value: 'NAME', help: 'export of the file; default by default' } },
  notes: ['exit code 1 when the deployment would be refused'],
  examples: ['pawl diff totals.ts --stack my-stack', 'pawl diff totals.ts --json | jq .changes'],
  run: compareFile,
}

async function compareFile(call: Call): Promise<number> {
  const { options, positionals, output } = call
  const { loadPipeline } = await import('../places/load.ts')
  const compiled = await loadPipeline(positionals[0], options.text('export'))
  const { pipeline } = compiled.topology
  const deployed = await deployedOf(call, pipeline)
  const changes = compare(compiled, deployed)
  const refused = changes.filter(({ change }) => change === 'refused')
  const state = deployed === null ? null : stateOf(deployed.head, null)
  output.record({
    pipeline,
    deployed: deployed !== null,
    state,
    refused: refused.length,
    changes: changes.map(withAction),
  })
  const style = output.style()
  const hue = {
    refused: 'red',
    migrated: 'yellow',
    changed: 'yellow',
    dropped: 'yellow',
    added: 'green',
    kept: 'dim',
  } as const
  const rows = changes.map(({ kind, id, change, text }) => [kind, id, change, text])
  const [heading = '', ...lines] = table(['kind', 'id', 'change', 'what it means'], rows)
  const colored = lines.map((line, at) => styled(style, hue[changes[at]?.change ?? 'kept'], line))
  const next = refused.map(({ code }) => `${code}: ${code === null ? '' : errorRegistry[code].action}`)
  output.print([heading, ...colored, '', ...new Set(next), verdictOf(pipeline, deployed, refused)])
  return refused.length === 0 ? exitCodes.success : exitCodes.failure
}

function verdictOf(pipeline: string, deployed: Deployed | null, refused: readonly Change[]): string {
  if (deployed === null) return `${pipeline} has never run: all is new`
  if (refused.length > 0) return `${pipeline} would park with the first epoch of this file; nothing would be lost`
  const { parked, paused } = deployed.head
  const lifted = parked?.kind === 'failure' ? '; another build lifts its park' : ''
  return `${pipeline} goes on from epoch ${deployed.manifest.epoch}${lifted}${paused ? '; it stays paused' : ''}`
}

function withAction(change: Change) {
  return { ...change, next: change.code === null ? null : errorRegistry[change.code].action }
}

async function deployedOf({ options }: Call, pipeline: string): Promise<Deployed | null> {
  try {
    return await withPipeline(options, pipeline, readDeployed)
  } catch (error) {
    if (isPawlError(error) && error.code === 'PIPELINE_NOT_FOUND') return null
    throw error
  }
}

async function readDeployed({ ledger, store, head }: OpenedPipeline): Promise<Deployed> {
  const manifest = await unseal<Manifest>(store, head.committed.manifest)
  const items = await ledger.histories(head.pipeline, head.promotedThrough + 1, head.committed.epoch + 1)
  const unpromoted = await Promise.all(items.map((item) => unseal<Manifest>(store, item.manifest)))
  return { head, manifest, unpromoted }
}
