/**
 * Tells the person, the pipe or the program at the other end how a run goes.
 *
 * On a terminal a live view is drawn at most five times a second; in a pipe each epoch is a line; under `--json` each
 * event is one. Takes events as telemetry: it never throws and never waits.
 */
import type { ProgressEvent } from '../model/event.ts'
import type { EmbeddedPlace } from '../places/embedded.ts'
import type { RunOutcome } from '../places/run.ts'
import type { Telemetry } from '../ports/system.ts'
import { newView, observe, observeHead, type RunView } from './observe-run.ts'
import { type Live, liveRegion } from './print-live.ts'
import { eventLine, isNotable, progressLines } from './print-progress.ts'
import { count, duration } from './print-values.ts'
import type { Output } from './write-output.ts'

/** Telemetry of one run. */
export interface Reporter extends Telemetry {
  /** Looks at the head now and then: another run may hold the pipeline. */
  watch(place: EmbeddedPlace): void
  /** The first Ctrl-C came. */
  stopping(): void
  /** The last words. */
  end(outcome: RunOutcome): void
  close(): void
}

const drawMs = 200
const lookMs = 1000

/** A reporter that writes to `output`. */
export function reportRun(output: Output, pipeline: string): Reporter {
  let view = newView(pipeline, output.style().nowMs)
  let live: Live | null = output.terminal ? liveRegion(output) : null
  const timers: NodeJS.Timeout[] = []
  const every = (ms: number, call: () => void) => timers.push(setInterval(call, ms).unref())
  const draw = () => live?.draw(progressLines(view, output.style(), output.columns))
  const say = (line: string) => {
    const stamped = `${new Date(output.style().nowMs).toISOString()}  ${line.replaceAll('\n', ' ')}`
    if (live === null) output.print([stamped])
    else live.print(stamped)
  }
  const change = (next: RunView) => {
    const before = view.state
    view = next
    if (view.state === 'standing by' && before !== 'standing by') say('standing by: another run holds the pipeline')
    if (view.state === 'paused' && before !== 'paused') say('paused by a person; pawl resume lifts it')
  }
  if (live !== null) every(drawMs, draw)
  return {
    emit(event: ProgressEvent) {
      change(observe(view, event, output.style().nowMs))
      output.record(event)
      const line = eventLine(event, view)
      if (line !== null && (live === null || isNotable(event))) say(line)
    },
    watch(place) {
      every(lookMs, () => void lookAt(place).then((next) => next && change(next)))
      const lookAt = async ({ ledger, place: here }: EmbeddedPlace) => {
        const head = await ledger.read(pipeline).catch(() => null)
        return head && observeHead(view, head, here)
      }
    },
    stopping() {
      view = { ...view, state: 'stopping' }
      const line = 'stopping after the epoch under way; Ctrl-C again abandons it'
      if (live === null) output.remark(line)
      else live.print(line)
    },
    end(outcome) {
      draw()
      const { counts, startedAtMs } = view
      const style = output.style()
      const committed = view.committed?.epoch ?? null
      output.record({ event: 'ended', pipeline, ...outcome, committed, counts, failures: view.failures })
      live?.close()
      live = null
      const rows = Object.entries(counts.out).map(([sink, out]) => `${count(style, out)} rows to ${sink}`)
      const sums = [`${count(style, counts.in)} records`, ...rows].join(', ')
      output.print([`${outcome.reason} after ${duration(style.nowMs - startedAtMs)}: ${sums}`])
    },
    close() {
      for (const timer of timers) clearInterval(timer)
      live?.close()
      live = null
    },
  }
}
