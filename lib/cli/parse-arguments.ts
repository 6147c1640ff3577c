/**
 * From the words of a command line to what a command gets, and the help that shows the same table.
 *
 * A command is plain data with one function. Options are declared once, with their help; whatever is not
 * understood is `COMMAND_INVALID`, in one sentence.
 */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { PawlError } from '../model/errors.ts'
import type { Output } from './write-output.ts'

/** One option: what it takes (nothing for a switch), and what it is for. */
export interface OptionSpec {
  /** Name of the value in the help; absent for a switch. */
  readonly value?: string
  readonly help: string
  /** May be given several times. */
  readonly multiple?: boolean
}

/** What a command is called with. */
export interface Call {
  readonly output: Output
  readonly positionals: readonly string[]
  readonly options: Options
  /** The environment; secrets come from here and never from the command line. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** One command: a file of its own. */
export interface Command {
  readonly name: string
  /** One line of `pawl --help`. */
  readonly summary: string
  /** Names of positionals in the usage line, e.g. `FILE` or `[PIPELINE]`. */
  readonly positionals: readonly string[]
  readonly options: Readonly<Record<string, OptionSpec>>
  /** Lines below the options. */
  readonly notes?: readonly string[]
  readonly examples: readonly string[]
  /** Answers with the exit code. */
  run(call: Call): Promise<number>
}

/** The options that were given, read by type. */
export interface Options {
  text(name: string): string | undefined
  texts(name: string): readonly string[]
  flag(name: string): boolean
  /** A whole number of at least `min`. */
  number(name: string, min: number): number | undefined
}

/** Options of every command. */
export const sharedOptions: Readonly<Record<string, OptionSpec>> = {
  json: { help: 'machine-readable output on stdout' },
  help: { help: 'this text' },
}

/** The option of every command that works on a directory. */
export const directoryOption: Readonly<Record<string, OptionSpec>> = {
  dir: { value: 'DIR', help: 'the pipeline directory; .pawl by default' },
}

/** The options of commands that look at a directory or at a deployment. */
export const placeOptions: Readonly<Record<string, OptionSpec>> = {
  ...directoryOption,
  stack: { value: 'NAME', help: 'a deployment instead: the CloudFormation stack; AWS as for any program of AWS' },
}

/** Understands the words after the command's name. Throws `COMMAND_INVALID`. */
export function parseArguments(command: Command, words: readonly string[]) {
  const specs = { ...command.options, ...sharedOptions }
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, { value, multiple = false }]) => [
      name,
      {
        type: value === undefined ? ('boolean' as const) : ('string' as const),
        multiple,
        ...(name === 'help' ? { short: 'h' } : {}),
      },
    ]),
  )
  const { values, positionals } = parsed(command, words, options)
  const required = command.positionals.filter((name) => !name.startsWith('['))
  if (values.help !== true) {
    if (positionals.length < required.length) throw misused(command, `${required[positionals.length]} is missing`)
    const extra = positionals[command.positionals.length]
    if (extra !== undefined) throw misused(command, `${JSON.stringify(extra)} is one argument too many`)
  }
  return { positionals, options: optionsOf(command, values) }
}

interface Parsed {
  readonly values: Readonly<Record<string, unknown>>
  readonly positionals: readonly string[]
}

function parsed(command: Command, words: readonly string[], options: ParseArgsOptionsConfig): Parsed {
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const sentence = message.replace(/\. To specify a positional.*$/s, '').replaceAll('\n', ' ')
    throw misused(command, sentence.charAt(0).toLowerCase() + sentence.slice(1))
  }
}

/** The refusal of a command line. */
export function misused(command: Pick<Command, 'name'>, fault: string): PawlError {
  return new PawlError('COMMAND_INVALID', `${fault} (pawl ${command.name})`, { command: command.name })
}

function optionsOf(command: Command, values: Readonly<Record<string, unknown>>): Options {
  const text = (name: string) => values[name] as string | undefined
  return {
    text,
    texts: (name) => (values[name] as string[] | undefined) ?? [],
    flag: (name) => values[name] === true,
    number(name, min) {
      const given = text(name)
      if (given === undefined) return undefined
      const number = Number(given)
      if (/^\d+$/.test(given) && Number.isSafeInteger(number) && number >= min) return number
      throw misused(command, `--${name} takes a whole number of at least ${min}, not ${JSON.stringify(given)}`)
    },
  }
}

/** The text of `pawl COMMAND --help`. */
export function commandHelp(command: Command): string {
  const usage = ['pawl', command.name, ...command.positionals, '[options]'].join(' ')
  const rows = Object.entries({ ...command.options, ...sharedOptions }).map(([name, { value, help }]) => [
    value === undefined ? `--${name}` : `--${name} ${value}`,
    help,
  ])
  const width = Math.max(...rows.map(([left]) => left.length))
  const notes = command.notes === undefined ? [] : ['', ...command.notes]
  return [
    `${command.summary}`,
    '',
    `usage: ${usage}`,
    '',
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`),
    ...notes,
    '',
    'examples:',
    ...command.examples.map((example) => `  ${example}`),
    '',
  ].join('\n')
}
