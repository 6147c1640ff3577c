/**
 * `writeAhead({...})`: any function of yours as a sink, fed in order from the store, at least once.
 *
 * Rows wait in the store as blocks until their epoch is committed; a promote reads them back and hands block after
 * block to the function, one call at a time a lane. The target has no transaction and no marker, so the marker lies
 * in the store and moves when the last block is written; how far an epoch got is noted there after each block. What
 * is repeated after a crash, a lost answer or an error is the block that was under way, no more; a promoter that
 * lost its lease looks at the marker before each block. Batches are cut when rows are staged, so that a repetition
 * has the same rows under the same key, whatever the options are by then. Rows that the function refuses for good stand
 * in the note on their block, and are recorded by the move of the marker.
 */
import { createHash } from 'node:crypto'
import { isPawlError, PawlError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { Committable, Marker } from '../../model/manifest.ts'
import { json, type Serde, text } from '../../model/serde.ts'
import type { Guarantee, PromoteResult, RejectPolicy, Sink } from '../../ports/sink.ts'
import type { CustomSinkSpec, OpenContext } from '../../ports/spec.ts'
import type { Store } from '../../ports/store.ts'
import { markerAfter, sameMarker } from '../shared/markers.ts'
import type { RefusedRowRecord } from '../shared/refused-rows.ts'
import { blocksOf, blockWriter, type RowBlock } from '../shared/row-blocks.ts'
import { type LanePlace, refusedCount, rowsWritten, type StoreMarkers, storeMarkers } from '../shared/store-markers.ts'
import { boundedCall } from './bounded-call.ts'
import { recordsOf, refusalsIn, refusedFault, type WriteAheadAnswer, type WriteAheadRefusal } from './refusals.ts'
import { rowEncoder, rowsOf, type WriteAheadRow } from './rows.ts'

export type { WriteAheadAnswer, WriteAheadRefusal } from './refusals.ts'
export type { WriteAheadRow } from './rows.ts'

/** Which rows these are. `(epoch, firstRow)` only grows within a lane, but for repetitions. */
export interface WriteAheadContext {
  readonly pipeline: string
  readonly sink: string
  /** Rows of one key always take the same lane; calls of one lane never overlap while their signal is heeded. */
  readonly lane: number
  readonly epoch: number
  /** Index of the first row within the lane's rows of the epoch. */
  readonly firstRow: number
  /** The same in each repetition of these rows, and of no others; at most 100 characters of `[0-9a-f-]`. */
  readonly idempotencyKey: string
  /** Aborted when the time for the call is over. Rows that are written after that may be written out of order. */
  readonly signal: AbortSignal
}

/** What is written where, and how. */
export interface WriteAheadOptions<K, V> {
  /**
   * Writes rows, in order; they count as written when the promise resolves, but for those that it says are refused for
   * good. Whatever it throws, the same rows come again: at once a few times, then at growing intervals while the
   * pipeline is parked. Under `at-most-once` they do not, unless the error has `untouched: true`: certainly nothing was
   * written.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that never refuses resolves with nothing
  write(rows: readonly WriteAheadRow<K, V>[], context: WriteAheadContext): Promise<WriteAheadAnswer | void>
  /**
   * What becomes of rows that `write` says are refused: `park` (default) stops the pipeline there; `dead-letter` sends
   * them to the pipeline's dead letters.
   */
  readonly onReject?: RejectPolicy
  /**
   * Says that rows which come again change nothing, even late and after newer ones: the target remembers
   * idempotency keys, or keeps `(epoch, firstRow)` with each key and refuses what is older. Then the sink is
   * effectively once by key, and counts as exactly-once; otherwise it is at-least-once.
   */
  readonly idempotent?: boolean
  /** Text by default. */
  readonly key?: Serde<K>
  /** JSON by default. */
  readonly value?: Serde<V>
  /** Strands that write side by side; 1 by default. */
  readonly lanes?: number
  /** Rows a call at most; 500 by default. */
  readonly batchRows?: number
  /** Bytes of encoded keys and values a call at most, unless one row is larger; 1 MiB by default. */
  readonly batchBytes?: number
  /** How long one call may take; 30 s by default. */
  readonly timeoutMs?: number
  /** Rows a lane and epoch at most: what can be written in a few minutes. 100,000 by default. */
  readonly laneRowsMax?: number
}

/** What becomes of staged rows; version 1. */
interface WriteAheadPart {
  readonly version: 1
}

const part: WriteAheadPart = Object.freeze({ version: 1 })

/** Describes a function as a sink. Throws `PIPELINE_INVALID` for bounds that are none. */
export function writeAhead<V, K = string>(options: WriteAheadOptions<K, V>): CustomSinkSpec<K, V> {
  const { lanes = 1, idempotent = false, batchRows = 500, batchBytes = 1024 * 1024 } = options
  const { timeoutMs = 30_000, laneRowsMax = 100_000, onReject = 'park' } = options
  for (const [name, bound] of Object.entries({ batchRows, batchBytes, timeoutMs, laneRowsMax })) {
    if (Number.isSafeInteger(bound) && bound >= 1) continue
    throw new PawlError('PIPELINE_INVALID', `writeAhead: ${name} is ${bound}`)
  }
  const guarantee: Guarantee = idempotent ? 'exactly-once' : 'at-least-once'
  const writer: Writer = {
    write: options.write as unknown as Writer['write'],
    key: (options.key ?? text()) as unknown as Serde<unknown>,
    value: (options.value ?? json<V>()) as unknown as Serde<unknown>,
    blocks: { rowsMax: batchRows, bytesMax: batchBytes },
    timeoutMs,
    laneRowsMax,
    onReject,
  }
  return Object.freeze({
    kind: 'sink',
    type: 'write-ahead',
    guarantee,
    onReject,
    lanes,
    open: async (sink, context) => writeAheadSink(sink, context, writer),
  } satisfies CustomSinkSpec<K, V>)
}

interface Writer {
  readonly write: WriteAheadOptions<unknown, unknown>['write']
  readonly key: Serde<unknown>
  readonly value: Serde<unknown>
  readonly blocks: { readonly rowsMax: number; readonly bytesMax: number }
  readonly timeoutMs: number
  readonly laneRowsMax: number
  readonly onReject: RejectPolicy
}

function writeAheadSink(sink: string, context: OpenContext, writer: Writer): Sink {
  const { pipeline, stage, store } = context
  const markers = storeMarkers(store, pipeline, sink)
  return {
    target: `write-ahead:${sink}`,
    limits: { laneRowsMax: writer.laneRowsMax, laneBytesMax: 64 * 1024 * 1024 },
    async stage({ lanes, ...invocation }) {
      return blockWriter({ lanes, ...invocation }, rowEncoder(writer, lanes), writer.blocks, part)
    },
    async base(lane, marker) {
      return (await markers.move(lane, null, marker)).marker ?? marker
    },
    async promote(committable, permit): Promise<PromoteResult> {
      const { lane, epoch, prev } = committable
      const next = markerAfter(committable, permit)
      let wrote = false
      const stood = await replay({ store, markers, committable, next }, async (block, firstRow) => {
        const place = { pipeline, sink, lane, epoch, firstRow }
        const refusals = await call(writer, block, { ...place, idempotencyKey: keyOf(stage, place, next) }, !wrote)
        wrote = true
        const refused = recordsOf(block, refusals, place, next.incarnation)
        if (refused.length > 0 && writer.onReject !== 'dead-letter') throw refusedFault(place, refused)
        return refused
      })
      if (!sameMarker(stood.marker, prev)) return { result: 'refused', found: stood.marker }
      const now = await markers.move(lane, prev, next, stood.since)
      if (!sameMarker(now.marker, next)) return { result: 'refused', found: now.marker }
      const refused = refusedCount(now, next)
      return refused === 0 ? { result: 'promoted' } : { result: 'promoted', refused }
    },
    async marker(lane) {
      return (await markers.look(lane)).marker
    },
    async reassign(lane, from, to) {
      return (await markers.move(lane, from, to)).marker
    },
    refused: markers.refused,
    forget: markers.forget,
    async close() {},
  }
}

interface Replay {
  readonly store: Store
  readonly markers: StoreMarkers
  readonly committable: Committable
  readonly next: Marker
}

type WriteBlock = (block: RowBlock, firstRow: number) => Promise<readonly RefusedRowRecord[]>

/** Writes the blocks that nobody has written yet, as long as the marker is `prev`; answers with where the lane stood. */
async function replay({ store, markers, committable, next }: Replay, write: WriteBlock): Promise<LanePlace> {
  const { sink, lane, epoch, prev, parts, rows } = committable
  let place = await markers.look(lane)
  let refusedRows: number | null = null
  let row = 0
  for (const staged of parts) {
    if ((staged.handle as WriteAheadPart | null)?.version !== part.version)
      throw new PawlError('STEP_INPUT_INVALID', `staged output of sink ${sink} is of another version`, { sink })
    for await (const block of blocksOf(store, staged)) {
      const firstRow = row
      row += block.rows
      if (row <= rowsWritten(place, next)) continue
      place = await markers.look(lane)
      if (!sameMarker(place.marker, prev)) return place
      if (row <= rowsWritten(place, next)) continue
      const refused = await write(block, firstRow)
      if (refused.length > 0) {
        refusedRows ??= (await markers.noted(lane, place, next)).length
        refusedRows += refused.length
        if (refusedRows > limits.refusedPerPromotionMax) throw refusedFault({ sink, lane, epoch }, refused, refusedRows)
        if ((await markers.decide(lane, place, next, row, refused)) === null) return place
      } else if (row < rows) await markers.note(lane, place, next, row)
    }
  }
  return place
}

/** One call of the function. Throws `SINK_UNAVAILABLE` for whatever it throws, and when its time is over. */
async function call(
  writer: Writer,
  block: RowBlock,
  place: Omit<WriteAheadContext, 'signal'>,
  isFirst: boolean,
): Promise<readonly WriteAheadRefusal[]> {
  const rows = rowsOf(block, writer)
  try {
    const answer = await boundedCall(writer.timeoutMs, (signal) => writer.write(rows, { ...place, signal }))
    return refusalsIn(answer, rows.length, place)
  } catch (error) {
    if (isPawlError(error)) throw error
    const { sink, lane, epoch, firstRow } = place
    const reason = error instanceof Error ? error.message : String(error)
    const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, rows from ${firstRow}: ${reason}`
    const untouched = isFirst && (error as { untouched?: unknown } | null)?.untouched === true
    const details = { sink, lane, epoch, firstRow, rows: rows.length, reason, untouched }
    throw new PawlError('SINK_UNAVAILABLE', fault, details, error)
  }
}

type RowsPlace = Omit<WriteAheadContext, 'signal' | 'idempotencyKey'>

/** Of this stage, sink and lane, this epoch and its very manifest, and this row. */
function keyOf(stage: string, { pipeline, sink, lane, epoch, firstRow }: RowsPlace, { hash }: Marker): string {
  const digest = createHash('sha256').update(JSON.stringify([stage, pipeline, sink, hash]))
  return `${digest.digest('hex').slice(0, 48)}-${lane}-${epoch}-${firstRow}`
}
