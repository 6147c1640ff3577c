/**
 * Reads a range of offsets of one partition, to its end, without a consumer group.
 *
 * The next fetch is under way while the batches of the last are used. A fetch that fails is repeated; records were
 * delivered up to `position` by then and are not delivered again. An empty answer before the end of the range is
 * never taken for a hole, because brokers give those to say "later" as well: it is asked again, and an error after
 * a while. Holes show in the offsets of what follows.
 */
import { PawlError } from '../../model/errors.ts'
import { Columns } from '../../model/record-columns.ts'
import { decodeBatches, nextOffset } from '../../model/record-decode.ts'
import type { LogBatch } from '../../model/records.ts'
import { giveBack } from '../shared/lent-memory.ts'
import { assertWithinLog, type OffsetRange } from '../shared/log-ranges.ts'
import { decompress } from './codecs.ts'
import { patiently, readCode, readRefused } from './log-errors.ts'
import { type FetchAnswer, fetch, type Isolation, logEnds } from './log-requests.ts'
import { type Patience, patience } from './patience.ts'
import type { TopicView } from './topic-view.ts'

/** How to read a range, and of which topic. */
export interface ReadOptions {
  readonly isolation: Isolation
  /** Bytes of one fetch; two may be held. A larger record batch comes all the same. */
  readonly fetchBytesMax: number
  /** How long a broker may be gone, or a leader be moving. */
  readonly patienceMs: number
  /** The topic that is meant, from when the range was planned. */
  readonly topicId: string
  /** Nobody keeps anything of a batch: its memory may hold the next answer. */
  readonly reuse: boolean
}

/** How long a log may lag behind the end of a range before it counts as shrunk. */
const shrunkAfterMs = 5000
const fetchWaitMs = 250

/** Every visible record of the range, in offset order. Throws as `LogSource.read`. */
export async function* readRange(
  view: TopicView,
  range: OffsetRange,
  options: ReadOptions,
): AsyncGenerator<LogBatch, void, undefined> {
  const { partition, end } = range
  const columns = new Columns()
  const fetchFrom = (offset: bigint) => patiently(options.patienceMs, () => fetchOnce(view, partition, offset, options))
  const limitMs = Math.min(shrunkAfterMs, options.patienceMs)
  let position = range.start
  let ahead: Promise<FetchAnswer> | null = null
  let lagging: Patience | null = null
  while (position < end) {
    const answer: FetchAnswer = await (ahead ?? fetchFrom(position))
    ahead = null
    const next = nextOffset(answer.records)
    if (next === null || next <= position) {
      lagging ??= patience(limitMs)
      await explainEmpty(view, { partition, start: position, end }, answer, options, lagging)
      continue
    }
    lagging = null
    if (next < end) {
      ahead = fetchFrom(next)
      // Its failure is thrown when it is awaited, if the reader comes that far.
      ahead.catch(() => undefined)
    }
    yield* decodeBatches(answer.records, {
      topic: view.topic,
      partition,
      start: position,
      end,
      aborted: options.isolation === 'read_committed' ? answer.aborted : undefined,
      decompress,
      columns,
    }).batches
    if (options.reuse) giveBack(answer.records)
    position = next
  }
}

async function fetchOnce(
  view: TopicView,
  partition: number,
  offset: bigint,
  options: ReadOptions,
): Promise<FetchAnswer> {
  const { topicId, isolation, fetchBytesMax: bytesMax } = options
  const layout = await view.layout()
  if (layout.topicId !== topicId) throw recreated(view.topic, topicId, layout.topicId)
  const answer = await view.ask(
    partition,
    fetch({ topicId, partition, offset, isolation, bytesMax, waitMs: fetchWaitMs }),
  )
  if (answer.error === readCode.none || answer.error === readCode.offsetOutOfRange) return answer
  view.forget()
  const details = { topic: view.topic, partition, offset: offset.toString() }
  throw readRefused(answer.error, `offset ${offset} of ${view.topic}/${partition}`, details)
}

/** The refusal of a topic whose id is not the one that was planned with. */
export function recreated(topic: string, expected: string, found: string): PawlError {
  return new PawlError('TOPIC_RECREATED', `${topic} has id ${found}, not ${expected}`, { topic, expected, found })
}

/** Throws when the rest of the range can no longer come; returns when asking again may help. */
async function explainEmpty(
  view: TopicView,
  rest: OffsetRange,
  answer: FetchAnswer,
  options: ReadOptions,
  lagging: Patience,
): Promise<void> {
  const { topic } = view
  const details = { topic, partition: rest.partition, offset: rest.start.toString() }
  const at = `${topic}/${rest.partition} at offset ${rest.start}`
  if (answer.records.length > 0) throw new PawlError('BATCH_DAMAGED', `${at} (no whole batch)`, details)
  const log = await patiently(options.patienceMs, async () => {
    const layout = await view.layout()
    const [starts, ends] = await Promise.all([
      view.offsets(layout, logEnds.earliest, options.isolation),
      view.offsets(layout, logEnds.latest, options.isolation),
    ])
    return { start: starts[rest.partition], end: ends[rest.partition] }
  })
  if (rest.start < log.start) assertWithinLog(topic, rest, log)
  if (await lagging.wait()) return
  assertWithinLog(topic, rest, log)
  throw new PawlError('LOG_UNAVAILABLE', `${at}: no records, though the log ends at ${log.end}`, details)
}
