/**
 * Bundles the functions with the user's pipeline file.
 *
 * One run of esbuild makes all functions, with what they share in chunks of their own: the pipeline's functions have
 * one and the same text in each, on which the build that the ledger records depends. A function is then given the
 * chunks that it can reach and no other; what it loads late (clients, codecs) costs nothing until it is used.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import type { BuildResult, Metafile } from 'esbuild'
import { PawlError } from '../lib/model/errors.ts'
import { type FunctionName, functionNames } from './function-names.ts'
import { packageRoot } from './package-root.ts'

/** One function, ready to be packed. */
export interface Bundle {
  /** Holds `NAME.mjs` and its chunks. */
  readonly directory: string
  /** Of all files. */
  readonly bytes: number
  /** Of those that load before the first call. */
  readonly startBytes: number
}

/** Minified bytes that the operate function may have, drivers of its sinks among them. */
export const operateBytesMax = 4_000_000

const bundled = new Map<string, Readonly<Record<FunctionName, Bundle>>>()

/** Bundles all functions around a pipeline file. Throws `DEPLOYMENT_INVALID` when they do not bundle or are too large. */
export function bundleFunctions(entry: string): Readonly<Record<FunctionName, Bundle>> {
  const file = resolve(entry)
  const known = bundled.get(file)
  if (known) return known
  const directory = mkdtempSync(join(tmpdir(), 'pawl-bundle-'))
  // By then the CDK has taken what it needs into its assembly.
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  const { outputs } = build(functionNames, file, join(directory, 'all')).metafile
  const made = Object.fromEntries(
    functionNames.map((name) => [name, pick(outputs, name, join(directory, name))]),
  ) as Record<FunctionName, Bundle>
  if (made.operate.bytes > operateBytesMax) {
    const fault = `the operate function has ${made.operate.bytes} bytes, at most ${operateBytesMax} are allowed`
    throw new PawlError('DEPLOYMENT_INVALID', fault, { bytes: made.operate.bytes })
  }
  bundled.set(file, made)
  return made
}

/** Bundles one function that is none of the pipeline's; answers with its directory. */
export function bundleFunction(name: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-bundle-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  build([name], null, directory)
  return directory
}

function build(
  names: readonly string[],
  pipelineFile: string | null,
  outdir: string,
): BuildResult & { readonly metafile: Metafile } {
  const { buildSync } = createRequire(import.meta.url)('esbuild') as typeof import('esbuild')
  const root = packageRoot()
  try {
    return buildSync({
      entryPoints: names.map((name) => join(root, 'functions', `${name}.ts`)),
      ...(pipelineFile === null ? {} : { alias: { 'pawl:pipeline': pipelineFile } }),
      outdir,
      absWorkingDir: root,
      bundle: true,
      splitting: true,
      minify: true,
      metafile: true,
      format: 'esm',
      platform: 'node',
      target: 'node24',
      // The functions are bundled from sources, and so is what the pipeline file imports from the package.
      conditions: ['pawl-source'],
      mainFields: ['module', 'main'],
      outExtension: { '.js': '.mjs' },
      // Packages of the older module format ask for built-in modules by `require`.
      banner: {
        js: "import{createRequire as pawlRequire}from'node:module';const require=pawlRequire(import.meta.url);",
      },
      logLevel: 'silent',
    })
  } catch (error) {
    const { errors = [] } = error as { errors?: readonly { text: string; location?: { file: string; line: number } }[] }
    const faults = errors.map(({ text, location }) => (location ? `${location.file}:${location.line} ${text}` : text))
    throw new PawlError('DEPLOYMENT_INVALID', faults.join('; ') || String(error), {}, error)
  }
}

function pick(outputs: Metafile['outputs'], name: FunctionName, directory: string): Bundle {
  mkdirSync(directory)
  const entry = Object.keys(outputs).find((path) => basename(path) === `${name}.mjs`)!
  const all = reachable(outputs, entry, true)
  const root = packageRoot()
  const sizes = new Map([...all].map((path) => [path, statSync(resolve(root, path)).size]))
  for (const path of all) cpSync(resolve(root, path), join(directory, basename(path)))
  const sum = (paths: Iterable<string>) => [...paths].reduce((bytes, path) => bytes + (sizes.get(path) ?? 0), 0)
  return { directory, bytes: sum(all), startBytes: sum(reachable(outputs, entry, false)) }
}

/** Outputs that load with `entry`; with `late`, also those that may load later. */
function reachable(outputs: Metafile['outputs'], entry: string, late: boolean): Set<string> {
  const found = new Set<string>()
  const visit = (path: string) => {
    if (found.has(path) || outputs[path] === undefined) return
    found.add(path)
    for (const { path: next, kind } of outputs[path].imports) if (late || kind === 'import-statement') visit(next)
  }
  visit(entry)
  return found
}
