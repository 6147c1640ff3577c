/**
 * From measured runs to the lines of the table: each figure with the better peer, Pawl, their ratio and the goal.
 *
 * Pure: takes results, gives rows.
 */
import type { DrainResult } from './drain.ts'
import type { PacedResult } from './paced.ts'
import type { SystemName } from './systems.ts'

/** A line of the table. */
export interface Figure {
  readonly figure: string
  readonly flink: number | null
  readonly streams: number | null
  readonly pawl: number | null
  readonly unit: string
  /** Pawl against the better peer: how many times as good. */
  readonly ratio: number | null
  readonly goal: string
  readonly reached: boolean | null
}

/** Everything that was measured. */
export interface Measured {
  readonly drains: readonly DrainResult[]
  readonly paced: readonly PacedResult[]
}

interface FigureSpec {
  readonly figure: string
  readonly unit: string
  readonly value: (system: SystemName) => number | null
  readonly more: boolean
  readonly goal: string
  /** Judges Pawl's value and its ratio. */
  readonly reached: (pawl: number, ratio: number | null) => boolean | null
}

/** All figures that can be made of what was measured. */
export function figuresOf({ drains, paced }: Measured): Figure[] {
  return [...drainFigures(drains), ...costFigures(drains), ...pacedFigures(paced)].map(figureOf)
}

function figureOf({ figure, unit, value, more, goal, reached }: FigureSpec): Figure {
  const [flink, streams, pawl] = (['flink', 'streams', 'pawl'] as const).map(value)
  const peers = [flink, streams].filter((peer) => peer !== null)
  const best = peers.length === 0 ? null : more ? Math.max(...peers) : Math.min(...peers)
  const ratio = best === null || pawl === null ? null : more ? pawl / best : best / pawl
  return { figure, unit, flink, streams, pawl, ratio, goal, reached: pawl === null ? null : reached(pawl, ratio) }
}

const atLeast = (times: number) => (_: number, ratio: number | null) => (ratio === null ? null : ratio >= times)

function drainFigures(drains: readonly DrainResult[]): FigureSpec[] {
  const keys = [...new Set(drains.map(({ job, records }) => `${job}/${records}`))]
  return keys.flatMap((key) => {
    const runs = drains.filter(({ job, records }) => `${job}/${records}` === key)
    const settings = [...new Map(runs.map((run) => [`${run.intervalMs}/${run.parallelism}`, run])).values()]
    return settings.flatMap((setting) => settingFigures(runs, setting))
  })
}

/** One job and size at one setting of the peers. At parallelism 2, Pawl stands there with two threads and with one. */
function settingFigures(runs: readonly DrainResult[], { job, records, intervalMs, parallelism }: DrainResult) {
  const at = (system: SystemName, threads: number, plainJson: boolean) =>
    runs.find((run) => {
      const same = run.system === system && run.intervalMs === intervalMs && run.parallelism === threads
      return same && (run.plainJson ?? false) === plainJson
    })
  const value =
    (of: (run: DrainResult) => number, threads: number, plainJson = false) =>
    (system: SystemName) => {
      const run = system === 'pawl' ? at(system, threads, plainJson) : at(system, parallelism, false)
      return run ? of(run) : null
    }
  const name = `${job}, ${millions(records)}, ${intervalMs / 1000} s, parallelism ${parallelism}`
  const times = records > 1_000_000 ? 2 : 4
  const cpu = (figure: string, threads: number, plainJson = false): FigureSpec => ({
    ...{ figure, unit: 'records per CPU-second', more: true, goal: `≥ ${times}×`, reached: atLeast(times) },
    value: value((run) => run.perCpuS, threads, plainJson),
  })
  const wall = (figure: string, threads: number): FigureSpec => ({
    ...{ figure, unit: 'records per second', more: true, goal: '≥ 1.5×', reached: atLeast(1.5) },
    value: value((run) => run.perS, threads),
  })
  const figures = [cpu(name, parallelism)]
  if (at('pawl', parallelism, true)) figures.push(cpu(`${name}, Pawl with plain json()`, parallelism, true))
  if (parallelism === 1) return figures
  const single = `${name}, Pawl on one thread`
  return [...figures, cpu(single, 1), wall(name, parallelism), wall(single, 1)]
}

function costFigures(drains: readonly DrainResult[]): FigureSpec[] {
  const own = (system: SystemName, wanted: (run: DrainResult) => boolean) =>
    drains.filter((run) => run.system === system && !run.plainJson && wanted(run))
  const worst = (of: (run: DrainResult) => number, wanted: (run: DrainResult) => boolean) => (system: SystemName) => {
    const runs = own(system, wanted)
    return runs.length === 0 ? null : Math.max(...runs.map(of))
  }
  const median = (of: (run: DrainResult) => number) => (system: SystemName) => {
    const sorted = own(system, () => true)
      .map(of)
      .sort((a, b) => a - b)
    return sorted.length === 0 ? null : sorted[Math.floor(sorted.length / 2)]
  }
  const memory = { unit: 'MB', more: false, goal: '≤ 250 MB', reached: (mb: number) => mb <= 250 }
  return [
    {
      ...{ figure: 'start of the process → first record, median', unit: 's', more: false, goal: '< 0.5 s' },
      ...{ value: median((run) => run.firstS), reached: (seconds) => seconds < 0.5 },
    },
    ...[1, 2].flatMap((parallelism) =>
      [false, true].map((large) => ({
        ...memory,
        figure: `peak memory, parallelism ${parallelism}, ${large ? 'large topics' : 'small topics'}`,
        value: worst(
          (run) => run.peakMb,
          (run) => run.parallelism === parallelism && run.records > 1_000_000 === large,
        ),
      })),
    ),
  ]
}

function pacedFigures(paced: readonly PacedResult[]): FigureSpec[] {
  const value = (intervalMs: number, of: (run: PacedResult) => number | null) => (system: SystemName) => {
    const run = paced.find((one) => one.system === system && one.intervalMs === intervalMs)
    return run ? of(run) : null
  }
  const less = { more: false }
  const noWorse = { ...less, unit: 'ms', goal: 'no worse', reached: atLeast(1) }
  const rate = paced[0]?.rate ?? 0
  const name = `record → visible at ${rate}/s`
  return [
    { ...noWorse, figure: `${name}, interval 1 s, p50`, value: value(1000, (run) => run.p50Ms) },
    { ...noWorse, figure: `${name}, interval 1 s, p99`, value: value(1000, (run) => run.p99Ms) },
    {
      ...noWorse,
      figure: `${name}, interval 100 ms, p50`,
      goal: '',
      reached: () => null,
      value: value(100, (run) => run.p50Ms),
    },
    {
      ...{ ...less, unit: 'ms', figure: `${name}, interval 100 ms, p99`, goal: '< 300 ms' },
      ...{ value: value(100, (run) => run.p99Ms), reached: (ms) => ms < 300 },
    },
    {
      ...{ ...less, unit: 'ms', figure: 'kill -9 → first new visible output, interval 1 s', goal: '< 2 s' },
      ...{ value: value(1000, (run) => run.silenceMs), reached: (ms) => ms < 2000 },
    },
    {
      ...{ ...less, unit: 'CPU-s', figure: 'CPU-seconds per idle minute, interval 1 s', goal: '≤ a tenth' },
      ...{ value: value(1000, (run) => run.idleCpuSPerMinute), reached: atLeast(10) },
    },
  ]
}

function millions(records: number): string {
  return records >= 1_000_000 ? `${records / 1_000_000} M` : `${records / 1000} k`
}
