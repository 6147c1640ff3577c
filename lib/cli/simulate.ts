/**
 * `pawl simulate FILE`: the pipeline in a hostile world, seed after seed.
 *
 * Everything is in memory and drawn from the seed, so a seed that fails once fails again. The end of its trace is
 * printed; later seeds are not tried.
 */
import { existsSync, readFileSync } from 'node:fs'
import { isPawlError, PawlError } from '../model/errors.ts'
import type { Compiled } from '../stream/compiled.ts'
import type { Simulated } from '../testing/simulate.ts'
import { type Call, type Command, misused, type Options } from './parse-arguments.ts'
import { count, duration } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import type { Output } from './write-output.ts'

/** `pawl simulate FILE`. */
export const simulateCommand: Command = {
  name: 'simulate',
  summary: 'run a pipeline under crashes, lost replies and zombies, drawn from seeds',
  positionals: ['FILE'],
  options: {
    seed: { value: 'N', help: 'the only seed, or with --seeds the first one; 1 by default' },
    seeds: { value: 'N', help: 'how many seeds; 100 by default, 1 when --seed is given' },
    input: {
      value: 'SOURCE=FILE',
      help: 'values of a source, one a line; made up for sources of text',
      multiple: true,
    },
    export: { value: 'NAME', help: 'export of the file; default by default' },
    trace: { help: 'print the trace even when nothing breaks' },
  },
  notes: ['exit code 1 when an invariant was broken'],
  examples: [
    'pawl simulate totals.ts --input orders=orders.jsonl',
    'pawl simulate totals.ts --seeds 1000',
    'pawl simulate totals.ts --seed 4711 --trace',
  ],
  run: simulateSeeds,
}

async function simulateSeeds({ output, options, positionals: [file] }: Call): Promise<number> {
  const [{ loadPipeline, loadExport }, { simulate }] = await Promise.all([
    import('../places/load.ts'),
    import('../testing/simulate.ts'),
  ])
  const first = options.number('seed', 0) ?? 1
  const seeds = options.number('seeds', 1) ?? (options.text('seed') === undefined ? 100 : 1)
  const compiled = await loadPipeline(file, options.text('export'))
  const pipeline = await loadExport(file, options.text('export'))
  const input = inputOf(compiled, options)
  const total = { seeds: 0, calls: 0, faults: 0, processes: 0, epochs: 0, healed: 0 }
  const startedAtMs = output.style().nowMs
  let last: Simulated | null = null
  for (let seed = first; seed < first + seeds; seed++) {
    last = await simulate(pipeline, { seed, input }).catch((error: unknown) => {
      throw failed(error, seed, file, output)
    })
    total.seeds++
    for (const name of ['calls', 'faults', 'processes', 'epochs', 'healed'] as const) total[name] += last[name]
    progress(output, total.seeds, seeds)
  }
  if (options.flag('trace') && last) output.print([...last.trace, ''])
  const { nowMs, ...style } = output.style()
  output.record({
    pipeline: compiled.topology.pipeline,
    firstSeed: first,
    ...total,
    failed: null,
    ...(options.flag('trace') ? { trace: last?.trace } : {}),
  })
  output.print([
    `${count(style, total.seeds)} ${total.seeds === 1 ? 'seed' : 'seeds'}, ${count(style, total.epochs)} epochs, ${count(style, total.processes)} processes, ` +
      `${count(style, total.calls)} port calls, ${count(style, total.faults)} faults, ${count(style, total.healed)} sinks healed: ` +
      `nothing broke (${duration(nowMs - startedAtMs)})`,
  ])
  return exitCodes.success
}

/** One line that is written over; terminals only. */
function progress(output: Output, done: number, seeds: number): void {
  if (!output.terminal || (done % 5 !== 0 && done !== seeds)) return
  output.raw(
    done === seeds ? '\r\x1b[K' : `\rseed ${count(output.style(), done)} of ${count(output.style(), seeds)}\x1b[K`,
  )
}

/** Prints what happened; the error to throw says the rest in one sentence. */
function failed(error: unknown, seed: number, file: string, output: Output): unknown {
  if (!isPawlError(error) || error.code !== 'SIMULATION_FAILED') return error
  const [first, ...lines] = error.message.split('\n')
  const why = String(error.details.invariant ?? first).replaceAll('\n', ' ')
  const from = lines.findIndex((line) => line !== '')
  const to = lines.findIndex((line) => line.startsWith('again: '))
  const trace = lines.slice(Math.max(0, from), to < 0 ? lines.length : to)
  if (output.terminal) output.raw('\r\x1b[K')
  output.print(trace)
  const fault = `seed ${seed} of ${file}: ${why} (pawl simulate ${file} --seed ${seed})`
  return new PawlError('SIMULATION_FAILED', fault, { ...error.details, seed, trace: trace.join('\n') }, error)
}

/** Values by source, decoded as the source's serde wants them; only lines of text can be made up. */
function inputOf(compiled: Compiled, options: Options): Record<string, unknown[]> {
  const input: Record<string, unknown[]> = {}
  for (const pair of options.texts('input')) {
    const at = pair.indexOf('=')
    const [source, file] = [pair.slice(0, at), pair.slice(at + 1)]
    const spec = compiled.sources[source]
    if (at < 1 || !spec) {
      const sources = Object.keys(compiled.sources).join(', ')
      throw misused(simulateCommand, `--input ${pair} names no source of ${sources}`)
    }
    input[source] = linesOf(file).map((line, index) => decoded(spec.value.name, line, `${file} line ${index + 1}`))
  }
  for (const [source, { value }] of Object.entries(compiled.sources)) {
    if (value.name === 'text' || source in input) continue
    throw misused(simulateCommand, `source ${source} reads ${value.name}: add --input ${source}=FILE`)
  }
  return input
}

function linesOf(file: string): string[] {
  if (!existsSync(file)) throw misused(simulateCommand, `there is no file ${file}`)
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
}

function decoded(serde: string, line: string, where: string): unknown {
  if (!/^(?:nullable\()*json\b/.test(serde)) return /bytes/.test(serde) ? Buffer.from(line) : line
  try {
    return JSON.parse(line)
  } catch (error) {
    throw new PawlError('COMMAND_INVALID', `${where} is no JSON`, {}, error)
  }
}
