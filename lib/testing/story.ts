/**
 * The story: what happened in a world, in words, for the person whose pipeline broke.
 *
 * One line an event, by process. Port calls are left out, but for those at which something went wrong: the full
 * trace has them.
 */
import type { ProgressEvent } from '../model/event.ts'

/** One line of a story. Null: nobody in particular. */
export interface StoryLine {
  readonly actor: number | null
  readonly text: string
}

/** The end of a story as text, one line an event. */
export function tell(story: readonly StoryLine[], linesMax = 40): string {
  const shown = story.slice(-linesMax)
  const left = story.length - shown.length
  const lines = shown.map(({ actor, text }) => `  ${(actor === null ? '' : `process ${actor}`).padEnd(11)} ${text}`)
  return [...(left > 0 ? [`  … ${left} earlier events`] : []), ...lines].join('\n')
}

/** What a process tells of itself, in words; null for what is of no interest to a reader. */
export function eventWords(event: ProgressEvent): string | null {
  switch (event.event) {
    case 'created':
      return 'creates the pipeline'
    case 'taken-over':
      return `becomes the holder, generation ${event.generation}, after ${event.from}`
    case 'opened':
      return `opens epoch ${event.epoch} over ${event.span} offsets, ${event.tasks} task(s)`
    case 'committed':
      return `commits epoch ${event.epoch}: ${event.counts.in} in, ${rowsOut(event.counts.out)}`
    case 'promoted':
      return `promotes epoch ${event.epoch} in lane ${event.sink}/${event.lane}, ${event.rows} row(s)`
    case 'finalized':
      return `finalizes epoch ${event.epoch}`
    case 'aborted':
      return `aborts epoch ${event.epoch}: ${event.code}`
    case 'parked':
      return `parks (${event.kind}): ${event.code}`
    case 'healed':
      return `heals lane ${event.sink}/${event.lane} from epoch ${event.fromEpoch} to ${event.toEpoch}`
    case 'unconfirmed':
      return `gives up ${event.rows} row(s) of epoch ${event.epoch} in lane ${event.sink}/${event.lane}: ${event.code}`
    case 'refused':
      return `finds refused rows in lane ${event.sink}/${event.lane}`
    case 'left':
      return `leaves: ${event.reason}`
    default:
      return null
  }
}

function rowsOut(out: Readonly<Record<string, number>>): string {
  const rows = Object.entries(out).map(([sink, count]) => `${count} to ${sink}`)
  return rows.length === 0 ? 'nothing out' : rows.join(', ')
}
