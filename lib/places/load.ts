/**
 * Loads a pipeline file and compiles what it exports.
 *
 * The one place where a user's module is imported; what goes wrong there is an error about the file.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { PawlError } from '../model/errors.ts'
import { compile } from '../stream/compile.ts'
import type { Compiled } from '../stream/compiled.ts'

/** Throws `PIPELINE_FILE_INVALID` when there is no such file, module or export, `PIPELINE_INVALID` for its mistakes. */
export async function loadPipeline(file: string, exportName = 'default'): Promise<Compiled> {
  const path = resolve(file)
  if (!existsSync(path)) throw new PawlError('PIPELINE_FILE_INVALID', `there is no file ${file}`, { file })
  const module = await importFile(file, path)
  if (!(exportName in module))
    throw new PawlError('PIPELINE_FILE_INVALID', `${file} has no export ${exportName}`, { file })
  return compile(module[exportName])
}

async function importFile(file: string, path: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(path).href)
  } catch (error) {
    const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    throw new PawlError('PIPELINE_FILE_INVALID', `${file} does not load: ${why}`, { file }, error)
  }
}
