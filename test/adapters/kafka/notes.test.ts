import { expect, test } from 'vitest'
import { type CommitNote, isTorn, noteBatch, noteKey, saysCommitted } from '../../../lib/adapters/kafka/notes.ts'
import { decodeBatches } from '../../../lib/model/record-decode.ts'

const topicId = 'ab'.repeat(16)
const note: CommitNote = { topicId, producerId: 2n ** 60n + 1n, epoch: 7, start: 2n ** 61n + 1n }
const text = written(noteBatch('pawl-s-p-out-0', note))

function written(batch: Buffer): string {
  const [{ bytes, keyStarts, keyEnds, valueStarts, valueEnds }] = decodeBatches(batch, {
    partition: 0,
    start: 0n,
    end: 1n,
  }).batches
  expect(bytes.toString('utf8', keyStarts[0], keyEnds[0])).toBe(noteKey('pawl-s-p-out-0'))
  return bytes.toString('utf8', valueStarts[0], valueEnds[0])
}

test('a note speaks of one transaction of one holder in one topic', () => {
  expect(saysCommitted(text, note)).toBe(true)
  expect(saysCommitted(text, { ...note, epoch: 8 })).toBe(false)
  expect(saysCommitted(text, { ...note, producerId: 2n ** 60n })).toBe(false)
  expect(saysCommitted(text, { ...note, topicId: 'cd'.repeat(16) })).toBe(false)
  for (const none of [null, undefined]) expect(saysCommitted(none, note)).toBe(false)
})

test('a transaction is torn whose marker is not there, in the topic that the note is of', () => {
  expect(isTorn(text, topicId, note.start - 1n)).toBe(true)
  expect(isTorn(text, topicId, note.start)).toBe(false)
  expect(isTorn(text, topicId, note.start + 5n)).toBe(false)
  expect(isTorn(text, 'cd'.repeat(16), 0n)).toBe(false)
  expect(isTorn(undefined, topicId, 0n)).toBe(false)
})

test.each(['{', '{"version":2}', 'null', '7'])(
  'a note that this version did not write stops the lane: %s',
  (foreign) => {
    expect(() => saysCommitted(foreign, note)).toThrow(/^MARKER_UNKNOWN/)
    expect(() => isTorn(foreign, topicId, 0n)).toThrow(/^MARKER_UNKNOWN/)
  },
)
