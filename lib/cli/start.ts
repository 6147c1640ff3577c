/**
 * Finds the command, runs it, and ends the process with its exit code.
 *
 * Commands are listed here and nowhere else. What is heavy (places, brokers, the simulator) is loaded by the
 * command that needs it.
 */
import { readFileSync } from 'node:fs'
import { PawlError } from '../model/errors.ts'
import { abortCommand } from './abort.ts'
import { collectCommand } from './collect.ts'
import { diffCommand } from './compare-file.ts'
import { consumeCommand } from './consume.ts'
import { doctorCommand } from './diagnose-place.ts'
import { drainCommand } from './drain.ts'
import { costCommand } from './estimate-cost.ts'
import { epochsCommand } from './list-epochs.ts'
import { sinksCommand } from './list-sinks.ts'
import { type Command, commandHelp, parseArguments } from './parse-arguments.ts'
import { pauseCommand } from './pause.ts'
import { produceCommand } from './produce.ts'
import { exitCodes, reportError } from './report-error.ts'
import { statusCommand } from './report-status.ts'
import { resumeCommand } from './resume.ts'
import { runCommand } from './run.ts'
import { runNowCommand } from './run-now.ts'
import { showCommand } from './show-epoch.ts'
import { simulateCommand } from './simulate.ts'
import { verifyCommand } from './verify.ts'
import { type Output, systemOutput } from './write-output.ts'

/** In the order in which people meet them. */
const commands: readonly Command[] = [
  runCommand,
  produceCommand,
  consumeCommand,
  statusCommand,
  epochsCommand,
  showCommand,
  verifyCommand,
  diffCommand,
  doctorCommand,
  pauseCommand,
  resumeCommand,
  drainCommand,
  runNowCommand,
  abortCommand,
  collectCommand,
  sinksCommand,
  simulateCommand,
  costCommand,
]

/** Runs the command line and ends the process. */
export async function startCommand(words: readonly string[]): Promise<void> {
  quietWarnings()
  process.stdout.on('error', endWhenNobodyReads)
  const { env } = process
  const output = systemOutput(words.includes('--json'), env)
  const code = await execute(words, output, env)
  await output.drain()
  process.exit(code)
}

async function execute(words: readonly string[], output: Output, env: NodeJS.ProcessEnv): Promise<number> {
  try {
    const [name, ...rest] = words
    if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
      return printHelp(output, name === 'help' ? rest[0] : undefined)
    }
    if (name === '--version') return printVersion(output)
    const command = find(name)
    const { positionals, options } = parseArguments(command, rest)
    if (options.flag('help')) return printHelp(output, name)
    return await command.run({ output, positionals, options, env })
  } catch (error) {
    return reportError(error, output, env.PAWL_DEBUG === '1')
  }
}

function find(name: string): Command {
  const found = commands.find((command) => command.name === name)
  if (found) return found
  const near = commands.find((command) => command.name.startsWith(name.slice(0, 3)))
  const hint = near ? `, did you mean ${near.name}?` : ''
  throw new PawlError('COMMAND_INVALID', `there is no command ${JSON.stringify(name)}${hint}`)
}

function printHelp(output: Output, name: string | undefined): number {
  output.raw(name === undefined ? overview() : commandHelp(find(name)))
  return exitCodes.success
}

function printVersion(output: Output): number {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  output.raw(`${(JSON.parse(manifest) as { version: string }).version}\n`)
  return exitCodes.success
}

function overview(): string {
  const width = Math.max(...commands.map(({ name }) => name.length))
  return [
    'pawl: end-to-end exactly-once stream processing without a cluster',
    '',
    'usage: pawl COMMAND [options]',
    '',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'pawl COMMAND --help shows options and examples. --json gives machine-readable output everywhere.',
    'exit codes: 0 success, 1 failure or fault found, 2 command line not understood, 3 pipeline parked, 4 paused, 130 interrupted',
    '',
  ].join('\n')
}

/** `pawl epochs | head` is no failure. */
function endWhenNobodyReads(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(exitCodes.success)
  throw error
}

/** What libraries and young parts of Node warn of is no business of the person at the terminal. */
function quietWarnings(): void {
  if (process.env.PAWL_DEBUG === '1') return
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (!/^(ExperimentalWarning|TimeoutNegativeWarning)$/.test(warning.name))
      process.stderr.write(`${warning.message}\n`)
  })
}
