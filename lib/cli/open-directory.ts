/**
 * Opens a pipeline directory, or a deployment, for commands that look at what is there.
 *
 * Makes nothing: a directory without a ledger is `PIPELINE_NOT_FOUND`, so that a mistyped `--dir` does not leave an
 * empty directory behind. Several processes may look while a pipeline runs.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileStore } from '../adapters/file/store.ts'
import { sqliteLedger } from '../adapters/sqlite/ledger.ts'
import { type PlaceStatus, placeStatus } from '../adapters/system/liveness.ts'
import { unseal } from '../epoch/seal.ts'
import { isPawlError, PawlError } from '../model/errors.ts'
import type { Head, ObjectRef } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import type { Deployment } from '../places/stack.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Store } from '../ports/store.ts'
import type { Launcher } from '../ports/system.ts'
import type { Options } from './parse-arguments.ts'

/** The directory that is meant when none is named. */
export const defaultDirectory = '.pawl'

/** One pipeline of a directory or a stack, opened. */
export interface OpenedPipeline {
  /** Null for a deployment, which has none. */
  readonly directory: string | null
  /** Of a deployment, null for a directory. */
  readonly stage: string | null
  readonly ledger: Ledger
  readonly store: Store
  readonly head: Head
  /** Starts nothing in a directory, where the process that runs the pipeline looks by itself. */
  readonly launcher: Launcher
  /** The deployment, for what else its outputs name. */
  readonly deployment: Deployment | null
}

/** The directory that the options name. */
export function directoryOf(options: Options): string {
  return options.text('dir') ?? defaultDirectory
}

/** Runs `look` on a pipeline of a directory or a stack, and closes it. The id may be left out when there is only one. */
export async function withPipeline<T>(
  options: Options,
  pipeline: string | undefined,
  look: (opened: OpenedPipeline) => Promise<T>,
): Promise<T> {
  const stack = options.text('stack')
  return stack === undefined ? inDirectory(options, pipeline, look) : inStack(stack, pipeline, look)
}

async function inStack<T>(
  stack: string,
  pipeline: string | undefined,
  look: (opened: OpenedPipeline) => Promise<T>,
): Promise<T> {
  const { openDeployment } = await import('../places/stack.ts')
  const deployment = await openDeployment(stack, pipeline)
  const { ledger, store, launcher, stage, pipeline: id } = deployment
  try {
    const head = await ledger.read(id)
    if (head === null) throw new PawlError('PIPELINE_NOT_FOUND', `${id} is deployed and has never run`, { stack })
    return await look({ directory: null, stage, ledger, store, head, launcher, deployment })
  } finally {
    await deployment.close()
  }
}

/** Nobody is started from outside: a process that runs the pipeline sees the ring at its next look. */
const directoryLauncher: Launcher = { start: async () => 'exists', status: async (place) => placeStatus(place) }

async function inDirectory<T>(
  options: Options,
  pipeline: string | undefined,
  look: (opened: OpenedPipeline) => Promise<T>,
): Promise<T> {
  const directory = directoryOf(options)
  const file = join(directory, 'ledger.db')
  if (!existsSync(file))
    throw new PawlError('PIPELINE_NOT_FOUND', `${directory} is no pipeline directory`, { directory })
  const ledger = sqliteLedger(file)
  try {
    const head = await pick(ledger, directory, pipeline)
    const store = fileStore(join(directory, 'store'))
    try {
      return await look({
        directory,
        stage: null,
        ledger,
        store,
        head,
        launcher: directoryLauncher,
        deployment: null,
      })
    } finally {
      await store.close()
    }
  } finally {
    await ledger.close()
  }
}

async function pick(ledger: Ledger, directory: string, pipeline: string | undefined): Promise<Head> {
  const known = await ledger.pipelines()
  const wanted = pipeline ?? known[0]
  if (wanted === undefined)
    throw new PawlError('PIPELINE_NOT_FOUND', `${directory} holds no pipeline yet`, { directory })
  if (pipeline === undefined && known.length > 1) {
    throw new PawlError(
      'COMMAND_INVALID',
      `${directory} holds ${known.length} pipelines, name one of ${known.join(', ')}`,
    )
  }
  const head = await ledger.read(wanted)
  if (head !== null) return head
  const others = known.length === 0 ? '' : `, it holds ${known.join(', ')}`
  throw new PawlError('PIPELINE_NOT_FOUND', `${wanted} in ${directory}${others}`, { pipeline: wanted, directory })
}

/** What is known of the place of the last run; `unknown` too where the person may not ask. */
export async function holderOf({ launcher }: Pick<OpenedPipeline, 'launcher'>, { run }: Head): Promise<PlaceStatus> {
  try {
    return await launcher.status(run.place)
  } catch (error) {
    if (isPawlError(error) && error.code === 'AWS_ACCESS_DENIED') return 'unknown'
    throw error
  }
}

/** A manifest that may have been collected, or damaged: null then. */
export async function manifestIfReadable(store: Store, ref: ObjectRef): Promise<Manifest | null> {
  try {
    return await unseal<Manifest>(store, ref)
  } catch (error) {
    if (isPawlError(error) && (error.code === 'OBJECT_MISSING' || error.code === 'MANIFEST_DAMAGED')) return null
    throw error
  }
}
