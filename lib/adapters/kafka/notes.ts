/**
 * Notes in the control partition of a lane: "the transaction that begins here was committed".
 *
 * A note is written outside of any transaction, once the coordinator has said that a transaction is committed whose
 * end is missing in the partition, and before anything is done about it. It names the holder of the transactional
 * id, whose next transaction can then be no other than one that mends. Notes are records of format version 1.
 */
import { PawlError } from '../../model/errors.ts'
import { RecordBatchEncoder } from '../../model/record-batch.ts'

/** Which transaction was committed. */
export interface CommitNote {
  /** Of the control topic: offsets mean nothing in a restored one. */
  readonly topicId: string
  readonly producerId: bigint
  readonly epoch: number
  /** Offset at which the transaction begins in the control partition. */
  readonly start: bigint
}

const noteVersion = 1

/** Key of the notes of a transactional id; only the last one is kept. */
export function noteKey(id: string): string {
  return `${id} committed`
}

/** A note as a record batch, to be appended to the control partition. */
export function noteBatch(id: string, { topicId, producerId, epoch, start }: CommitNote): Buffer {
  const encoder = new RecordBatchEncoder({ capacity: 1024 })
  const note = { version: noteVersion, topicId, producerId: String(producerId), epoch, start: String(start) }
  encoder.add(Date.now(), noteKey(id), JSON.stringify(note))
  return encoder.seal()
}

/** True when the note says that this holder's transaction was committed. Throws `MARKER_UNKNOWN`. */
export function saysCommitted(note: string | null | undefined, holder: Omit<CommitNote, 'start'>): boolean {
  const { topicId, producerId, epoch } = parsed(note)
  return topicId === holder.topicId && producerId === String(holder.producerId) && epoch === holder.epoch
}

/**
 * True when the note tells of a committed transaction whose marker is not there: the last one stands at `marker`, before
 * it. That is so once the broker aborted a mending transaction that nobody ended in time. Throws `MARKER_UNKNOWN`.
 */
export function isTorn(note: string | null | undefined, topicId: string, marker: bigint): boolean {
  const { topicId: noted, start } = parsed(note)
  return noted === topicId && start !== undefined && BigInt(start) > marker
}

interface NoteText {
  readonly topicId: string
  readonly producerId: string
  readonly epoch: number
  readonly start: string
}

function parsed(note: string | null | undefined): Partial<NoteText> {
  if (!note) return {}
  const unknown = (cause?: unknown) => new PawlError('MARKER_UNKNOWN', `a note holds ${note.slice(0, 200)}`, {}, cause)
  let value: NoteText & { readonly version: number }
  try {
    value = JSON.parse(note)
  } catch (error) {
    throw unknown(error)
  }
  if (value?.version !== noteVersion) throw unknown()
  return value
}
