/**
 * The progress of a run: a few lines that are drawn in place on a terminal, or one line an epoch in a pipe.
 *
 * Pure text; `print-live.ts` moves the cursor. Labels are cut to the terminal's width, so that no line wraps and the
 * drawing stays in place.
 */
import type { ProgressEvent } from '../model/event.ts'
import { lagOf, type RunView, rateOf } from './observe-run.ts'
import { age, count, duration, time } from './print-values.ts'
import { type Style, styled } from './write-output.ts'

const labelWidth = 11
const hues = {
  starting: 'bold',
  running: 'green',
  idle: 'green',
  retrying: 'yellow',
  'standing by': 'yellow',
  parked: 'red',
  paused: 'yellow',
  stopping: 'yellow',
} as const

/** The lines of the live view. */
export function progressLines(view: RunView, style: Style, columns: number): string[] {
  const { state, startedAtMs, generation } = view
  const up = `up ${duration(style.nowMs - startedAtMs)}`
  const held = generation === null ? up : `${up}, generation ${generation}`
  const title = `${styled(style, 'bold', view.pipeline)}  ${styled(style, hues[state], state)}`
  const fits = view.pipeline.length + state.length + held.length + 4 <= columns
  const head = fits ? `${title}  ${styled(style, 'dim', held)}` : title
  return [head, ...rowsOf(view, style).map(([label, text]) => row(style, columns, label, text))]
}

function row(style: Style, columns: number, label: string, text: string): string {
  const room = Math.max(10, columns - labelWidth - 1)
  const cut = text.length > room ? `${text.slice(0, room - 1)}…` : text
  return `${styled(style, 'dim', label.padEnd(labelWidth))}${cut}`
}

function rowsOf(view: RunView, style: Style): [string, string][] {
  const { committed, counts, promoted, last } = view
  const rows: [string, string][] = [
    ['epoch', epochText(view, style)],
    ['committed', committedText(view, style)],
    ['promoted', promoted === null ? '-' : `${count(style, promoted)}${rowsText(counts.out, style)}`],
    ['records', recordsText(view, style)],
    ['watermark', committed === null ? '-' : watermarkText(committed.watermarkMs, style)],
    ['lag', lagText(view, style)],
  ]
  if (last === null) return rows
  const failures = view.failures === 0 ? '' : `${count(style, view.failures)}, the last one `
  return [...rows, ['failures', `${failures}${age(style, last.atMs)}: ${brief(last.message)}`]]
}

function epochText({ open, committed }: RunView, style: Style): string {
  if (open !== null) {
    const since = duration(style.nowMs - open.sinceMs)
    return `${count(style, open.epoch)}, ${count(style, open.span)} offsets, open for ${since}`
  }
  return committed === null ? '-' : `${count(style, committed.epoch + 1)} comes next`
}

function committedText({ committed }: RunView, style: Style): string {
  if (committed === null) return '-'
  return `${count(style, committed.epoch)}, ${age(style, committed.atMs)}, took ${duration(committed.tookMs)}`
}

function rowsText(out: Readonly<Record<string, number>>, style: Style): string {
  const parts = Object.entries(out).map(([sink, rows]) => `${sink} ${count(style, rows)}`)
  return parts.length === 0 ? '' : `, rows: ${parts.join(', ')}`
}

function recordsText(view: RunView, style: Style): string {
  const { counts } = view
  const odd = [
    ...(counts.late > 0 ? [`${count(style, counts.late)} late`] : []),
    ...(counts.rejected > 0 ? [`${count(style, counts.rejected)} rejected`] : []),
  ]
  return [`${count(style, counts.in)} in`, `${count(style, rateOf(view, style.nowMs))}/s`, ...odd].join(', ')
}

function watermarkText(watermarkMs: number | null, style: Style): string {
  if (watermarkMs === null) return '-'
  const behindMs = style.nowMs - watermarkMs
  return behindMs < 0 ? time(watermarkMs) : `${time(watermarkMs)}, ${duration(behindMs)} behind`
}

function lagText(view: RunView, style: Style): string {
  const total = lagOf(view)
  const rate = rateOf(view, style.nowMs)
  const behind = view.lag.filter(({ records }) => records !== '0')
  const parts = behind.map(({ source, partition, records }) => `${source}/${partition} ${count(style, records)}`)
  return [
    count(style, total),
    ...(total > 0n && rate >= 1 ? [`${duration((Number(total) / rate) * 1000)} at this rate`] : []),
    ...(parts.length < 2 ? [] : [parts.join(', ')]),
  ].join(', ')
}

/** The line of an event, where it deserves one; `view` is the view after it. */
export function eventLine(event: ProgressEvent, view: RunView): string | null {
  switch (event.event) {
    case 'created':
      return `created ${event.pipeline}, incarnation ${event.incarnation}`
    case 'taken-over':
      return `generation ${event.generation} goes on from ${event.from}`
    case 'finalized':
      return epochLine(event.epoch, view)
    case 'aborted':
      return `epoch ${event.epoch} failed, attempt ${event.attempt.slice(0, 8)}: ${brief(event.message)}`
    case 'parked':
      return `parked (${event.kind}): ${event.message}`
    case 'waiting':
      return `waiting: ${event.message}`
    case 'healed':
      return `healed ${event.sink}/${event.lane}, which had lost output after epoch ${event.fromEpoch}, through epoch ${event.toEpoch}`
    case 'offsets-unpublished':
      return `group offsets of ${event.source} not published: ${brief(event.message)}`
    case 'unconfirmed':
      return `unconfirmed: ${event.rows} rows of epoch ${event.epoch} in ${event.sink}/${event.lane} may not be shown (${event.code})`
    case 'refused':
      return `${event.sink}/${event.lane} refused rows of epoch ${event.epoch}; the next epoch carries them to the dead letters`
    case 'opened':
    case 'committed':
    case 'promoted':
    case 'lag':
    case 'health':
    case 'died':
    case 'step':
    case 'left':
      return null
  }
}

/** A message without its next step, which is Pawl's own as long as it tries again; on one line. */
function brief(message: string): string {
  return message.replace(/\.? Next: .*$/s, '').replaceAll('\n', ' ')
}

/** Events that a terminal shows above the live view; epochs are in it. */
export function isNotable(event: ProgressEvent): boolean {
  return event.event !== 'finalized' && event.event !== 'taken-over'
}

function epochLine(epoch: number, view: RunView): string {
  const { committed } = view
  if (committed?.epoch !== epoch) return `epoch ${epoch} promoted, which another run had committed`
  const { counts, watermarkMs, tookMs } = committed
  const out = Object.entries(counts.out).map(([sink, rows]) => `${sink} ${rows}`)
  const parts = [
    `epoch ${epoch} promoted`,
    `${counts.in} in`,
    ...(out.length === 0 ? ['nothing out'] : out),
    ...(counts.late > 0 ? [`${counts.late} late`] : []),
    ...(counts.rejected > 0 ? [`${counts.rejected} rejected`] : []),
    `took ${duration(tookMs)}`,
    ...(watermarkMs === null ? [] : [`watermark ${time(watermarkMs)}`]),
  ]
  return parts.join(', ')
}
