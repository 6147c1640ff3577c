/**
 * The real `pawl` command in a project of its own: a temporary directory in which `pawl` is installed as a package.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** How a command ended. */
export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Lines of stdout, each parsed as JSON. */
  records(): Record<string, unknown>[]
}

export interface RunOptions {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  /** Called with the process and all of stdout so far, whenever there is more. */
  readonly onOutput?: (stdout: string, kill: (signal: NodeJS.Signals) => void) => void
}

/** A directory with pipeline files in it. */
export interface Project extends Disposable {
  readonly directory: string
  path(...parts: readonly string[]): string
  write(name: string, text: string): void
  pawl(args: readonly string[], options?: RunOptions): Promise<Ended>
  /** Any other program. */
  node(args: readonly string[], options?: RunOptions): Promise<Ended>
}

/** Makes a project with the given files. */
export function project(files: Readonly<Record<string, string>> = {}): Project {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-cli-'))
  mkdirSync(join(directory, 'node_modules'))
  symlinkSync(root, join(directory, 'node_modules', 'pawl'))
  const write = (name: string, text: string) => writeFileSync(join(directory, name), text)
  for (const [name, text] of Object.entries(files)) write(name, text)
  return {
    directory,
    path: (...parts) => join(directory, ...parts),
    write,
    pawl: (args, options) => start(directory, [join(root, 'lib/cli/main.ts'), ...args], options),
    node: (args, options) => start(directory, args, options),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  }
}

async function start(directory: string, args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const child = spawn(process.execPath, ['--conditions=pawl-source', ...args], {
    cwd: directory,
    env: { PATH: process.env.PATH, ...options.env },
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    options.onOutput?.(stdout, (signal) => void child.kill(signal))
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  const [code] = (await once(child, 'close')) as [number | null]
  const records = () =>
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  return { code, stdout, stderr, records }
}

/** A word count with small epochs. */
export const wordCount = `
import { json, pipeline, text, topic } from 'pawl'
export default pipeline('word-count', { checkpoint: { intervalMs: 0 }, epoch: { spanMax: 40 } })
  .from(topic('lines', { value: text() }))
  .flatMap((line) => line.split(' '))
  .keyBy((word) => word)
  .count('counter')
  .to('counts', topic('counts', { key: text(), value: json<number>() }))
`

/** Lines of three words. */
export function linesOf(count: number): string {
  return Array.from({ length: count }, (_, i) => `ratchet pawl w${i % 10}\n`).join('')
}

/** A project whose word count has run over 100 lines. */
export async function countedProject(lines = 100): Promise<Project> {
  const made = project({ 'count.ts': wordCount })
  await succeed(made.pawl(['produce', 'lines', '--partitions', '2'], { input: linesOf(lines) }))
  await succeed(made.pawl(['run', 'count.ts', '--until', 'caught-up']))
  return made
}

/** The command, which must end with 0. */
export async function succeed(running: Promise<Ended>): Promise<Ended> {
  const ended = await running
  if (ended.code !== 0) throw new Error(`exit code ${ended.code}: ${ended.stderr}`)
  return ended
}
