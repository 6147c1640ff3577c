/**
 * The local AWS of a person: where its state lies, and how the scripts around it speak.
 *
 * `aws:up` leaves a keeper behind, a process to which emulator, broker and poller belong; when it ends, so do they.
 * What the other scripts must know of it stands in `.cache/aws/local.json`.
 */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Root of the project. */
export const root = fileURLToPath(new URL('../..', import.meta.url))
/** Where state and logs lie. */
export const localDirectory = join(root, '.cache', 'aws')
/** Written by the keeper once all is up. */
export const localFile = join(localDirectory, 'local.json')
/** Name of the stack that `infra/app.ts` makes. */
export const stackName = `pawl-word-count-${process.env.STAGE_NAME ?? 'dev'}`

/** What is up. */
export interface LocalAws {
  /** Of the keeper. */
  readonly pid: number
  /** What programs need to take the emulator for AWS. */
  readonly environment: Readonly<Record<string, string>>
  readonly bootstrapServers: string
}

/** What is up, or null. */
export function findLocal(): LocalAws | null {
  if (!existsSync(localFile)) return null
  const local = JSON.parse(readFileSync(localFile, 'utf8')) as LocalAws
  try {
    process.kill(local.pid, 0)
    return local
  } catch {
    return null
  }
}

/** What is up. Throws a sentence when nothing is. */
export function mustFindLocal(): LocalAws {
  const local = findLocal()
  if (local === null) throw new Error('nothing is up: run npm run aws:up first')
  return local
}

/** Where a script writes what people read only when something went wrong. */
export function logFile(name: string): string {
  mkdirSync(localDirectory, { recursive: true })
  return join(localDirectory, `${name}.log`)
}

/** Says what is being done. */
export function say(line: string): void {
  console.log(`  ${line}`)
}

/** Runs a script; what it throws becomes one sentence. */
export async function perform(script: () => Promise<void>): Promise<void> {
  process.removeAllListeners('warning')
  try {
    await script()
    process.exit(0)
  } catch (error) {
    console.error(`  ${error instanceof Error ? error.message : String(error)}`)
    process.exit(1)
  }
}

/** Runs a program with its output in a log. Throws a sentence with the end of it when it fails. */
export async function runLogged(
  log: string,
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const file = logFile(log)
  const out = openSync(file, 'a')
  const [program, ...words] = command
  const child = spawn(program!, words, {
    cwd: root,
    stdio: ['ignore', out, out],
    env: { ...process.env, ...environment, PATH: `${join(root, 'node_modules', '.bin')}:${process.env.PATH}` },
  })
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('exit', resolve))
  closeSync(out)
  if (code === 0) return
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  const fault = lines.findLast((line) => /\bError: |failed|❌/.test(line)) ?? lines.at(-1) ?? ''
  throw new Error(`${command.slice(0, 2).join(' ')} ended with ${code}: ${fault.trim()} (all of it is in ${file})`)
}
