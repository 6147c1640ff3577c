/**
 * Loads a pipeline file and compiles what it exports.
 *
 * The one place where a user's module is imported; what goes wrong there is an error about the file.
 */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isPawlError, PawlError } from '../model/errors.ts'
import { compile } from '../stream/compile.ts'
import type { Compiled } from '../stream/compiled.ts'

/** Throws `PIPELINE_FILE_INVALID` when there is no such file, module or export, `PIPELINE_INVALID` for its mistakes. */
export async function loadPipeline(file: string, exportName = 'default'): Promise<Compiled> {
  return compilePipeline(file, await loadExport(file, exportName))
}

/** What the file exports, not compiled. Throws `PIPELINE_FILE_INVALID`. */
export async function loadExport(file: string, exportName = 'default'): Promise<unknown> {
  const path = resolve(file)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) throw invalid(file, 'there is no such file')
  if (!stats.isFile()) throw invalid(file, 'it is no file')
  const module = await importFile(file, path)
  if (!(exportName in module)) throw invalid(file, `it has no ${exportName} export`)
  return module[exportName]
}

function compilePipeline(file: string, exported: unknown): Compiled {
  try {
    return compile(exported)
  } catch (error) {
    if (!isPawlError(error) || error.code !== 'PIPELINE_FILE_INVALID') throw error
    throw invalid(
      file,
      `its export is ${typeof exported === 'object' ? 'an object' : `of type ${typeof exported}`}, no pipeline with a sink`,
      error,
    )
  }
}

async function importFile(file: string, path: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(path).href)
  } catch (error) {
    throw isPawlError(error) ? error : invalid(file, `it does not load: ${oneLine(error)}`, error)
  }
}

/** Message and, for what does not parse, where: Node puts the place into the first line of the stack alone. */
function oneLine(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const at = /^(?:file:)?\S*\/([^/\s]+:\d+)\n/.exec(error.stack ?? '')?.[1]
  const message = `${error.name}: ${error.message}`.replaceAll(/\s+/g, ' ')
  return at === undefined ? message : `${message} (${at})`
}

function invalid(file: string, why: string, cause?: unknown): PawlError {
  return new PawlError('PIPELINE_FILE_INVALID', `${file}: ${why}`, { file }, cause)
}
