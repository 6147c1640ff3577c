/**
 * Which row a broker refuses, for the error that parks the pipeline.
 *
 * A broker answers for a whole batch, and names records of it (by index) only where a record is at fault by itself.
 * Of a batch that is too large it is the largest record that a person has to look at. Source: Produce response
 * version 8, `record_errors`, https://kafka.apache.org/protocol#The_Messages_Produce
 */
import { PawlError } from '../../model/errors.ts'
import type { Committable } from '../../model/manifest.ts'
import { decodeBatches } from '../../model/record-decode.ts'
import type { LogBatch } from '../../model/records.ts'
import type { ReadyBatch } from './staged.ts'

const rowKeyCharsMax = 200

/** The row at fault: its key as text, null for a row without one. `index`: as the broker named it, else the largest. */
export function refusedRowKey({ batch, partition }: Pick<ReadyBatch, 'batch' | 'partition'>, index: number | null) {
  const base = batch.readBigInt64BE(0)
  const range = { partition, start: base, end: base + 2n ** 31n, verify: false }
  const [rows] = decodeBatches(batch, range).batches
  if (rows === undefined) return null
  const row = index !== null && index < rows.count ? index : largestOf(rows)
  const start = rows.keyStarts[row]
  return start < 0 ? null : rows.bytes.toString('utf8', start, rows.keyEnds[row]).slice(0, rowKeyCharsMax)
}

function largestOf({ count, keyStarts, keyEnds, valueStarts, valueEnds }: LogBatch): number {
  let largest = 0
  let most = -1
  for (let row = 0; row < count; row++) {
    const bytes = keyEnds[row] - keyStarts[row] + valueEnds[row] - valueStarts[row]
    if (bytes > most) {
      most = bytes
      largest = row
    }
  }
  return largest
}

/** The refusal with sink, lane, epoch, topic and row key in it. */
export function namedRefusal(refused: PawlError, { sink, lane, epoch }: Committable): PawlError {
  const { topic, partition, rows, rowKey, reason } = refused.details
  const among = rows === 1 ? '' : `, in a batch of ${rows} rows`
  const row = rowKey === null ? 'without a key' : rowKey
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, topic ${topic}/${partition}, row ${row}${among}: ${reason}`
  const details = { sink, lane, epoch, topic, partition, rowKey, column: null, reason, kafka: refused.details.kafka }
  return new PawlError(refused.code, fault, details, refused.cause)
}
