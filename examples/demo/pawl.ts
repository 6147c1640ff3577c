/**
 * The `pawl` command as a child process, as a person would type it.
 *
 * Nothing of the demo reaches into the package: it starts the command, reads its JSON lines, and kills it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A running command. */
export interface Command {
  /** `run`, `produce`, … */
  readonly name: string
  readonly child: ChildProcess
  /** Resolves when the process is gone and its output read: its exit code, or null when it was killed. */
  readonly ended: Promise<number | null>
  /** What it said on its error output; grows. */
  readonly complaints: readonly string[]
}

/** Starts `pawl` with arguments. Each JSON document that it prints goes to `onRecord`, none after its end. */
export function startPawl(args: readonly string[], onRecord: (record: unknown) => void = () => {}): Command {
  const child = spawn(process.execPath, [...process.execArgv, main(), ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  const complaints: string[] = []
  createInterface(child.stderr).on('line', (line) => complaints.push(line))
  createInterface(child.stdout).on('line', (line) => {
    // A process that is killed may leave half a line.
    if (line.startsWith('{') && line.endsWith('}')) onRecord(JSON.parse(line))
  })
  child.stdin.on('error', () => {})
  return { name: args[0], child, complaints, ended: once(child, 'close').then(([code]) => code as number | null) }
}

/** Waits for the end of a command. Throws what it complained of when it failed. */
export async function succeeded({ name, ended, complaints }: Command): Promise<void> {
  const code = await ended
  if (code !== 0) throw new Error(`pawl ${name} ended with ${code}: ${complaints.join('\n')}`)
}

/** The command lies beside the entry of the package, from source and when it is installed. */
function main(): string {
  const entry = import.meta.resolve('pawl')
  return fileURLToPath(new URL(`cli/main${extname(entry)}`, entry))
}
