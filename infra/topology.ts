/**
 * Reads a pipeline file at synthesis: its topology, its settings, and which topics it touches.
 *
 * The file runs in a child process; what comes back is plain data.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ErrorCode, errorRegistry, PawlError } from '../lib/model/errors.ts'
import type { AwsResource } from '../lib/model/resources.ts'
import type { Settings } from '../lib/model/settings.ts'
import type { Topology } from '../lib/model/topology.ts'
import type { Compiled } from '../lib/stream/compiled.ts'

/** What synthesis knows of a pipeline. */
export interface Description {
  readonly topology: Topology
  readonly settings: Settings
  readonly sources: readonly {
    readonly id: string
    readonly topic: string
    /** Under which progress is published; null for none. */
    readonly group: string | null
    /** It names a cluster of its own, which the deployment knows nothing of. */
    readonly ownCluster: boolean
    readonly start: Compiled['sources'][string]['start']['at']
    readonly isolation: 'read_committed' | 'read_uncommitted'
    readonly onLostOffsets: 'fail' | 'skip'
  }[]
  readonly sinks: readonly {
    readonly id: string
    /** `topic`, or what a custom sink calls itself. */
    readonly type: string
    readonly topics: readonly string[]
    readonly ownCluster: boolean
    /** What it uses of AWS, beside what every pipeline uses. */
    readonly resources?: readonly AwsResource[]
  }[]
}

/** What the child process prints. */
export type Answer =
  | { readonly description: Description }
  | { readonly code: ErrorCode | null; readonly message: string }

const described = new Map<string, Description>()

/** Throws `PIPELINE_FILE_INVALID`, or what `compile` throws. */
export function describePipeline(entry: string): Description {
  const file = resolve(entry)
  const known = described.get(file)
  if (known) return known
  if (!existsSync(file)) throw new PawlError('PIPELINE_FILE_INVALID', `${entry}: there is no such file`)
  const answer = ask(file)
  if ('description' in answer) {
    described.set(file, answer.description)
    return answer.description
  }
  const { code, message } = answer
  if (code === null || !(code in errorRegistry)) throw new PawlError('PIPELINE_FILE_INVALID', `${entry}: ${message}`)
  const error = new PawlError(code, message)
  error.message = message
  throw error
}

function ask(file: string): Answer {
  const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const script = fileURLToPath(new URL(`./describe${ending}`, import.meta.url))
  const printed = execFileSync(process.execPath, [...conditionsOf(), script, file], {
    cwd: dirname(file),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '', NODE_NO_WARNINGS: '1' },
  })
  return JSON.parse(printed.trimEnd().split('\n').at(-1) ?? '')
}

/** From the project's own sources everything is read as sources. */
function conditionsOf(): string[] {
  return import.meta.url.endsWith('.ts') ? ['--conditions=pawl-source'] : []
}
