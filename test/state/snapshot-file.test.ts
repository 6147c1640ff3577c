import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crc32c } from '../../lib/model/crc32c.ts'
import type { PawlError } from '../../lib/model/errors.ts'
import { loadAggregateState } from '../../lib/state/aggregate-state.ts'
import { assembleSnapshotFile, frame, frameKind, readSnapshotFile } from '../../lib/state/snapshot-file.ts'
import { loadWindowState } from '../../lib/state/window-state.ts'
import { commit, nothingStored, scope } from './support.ts'

const header = { ...scope, stateKind: 'aggregate', file: 'base' as const, entries: 3 }
const blocks = [
  frame(frameKind.set, 2, [[0, ['a', 1], [{ n: 1 }, null]]]),
  frame(frameKind.setTagged, 1, [[0, ['ü'], [{ $: 'bigint', v: '5' }]]]),
]
const chunks = assembleSnapshotFile(header, blocks)
const file = Buffer.concat(chunks)

function codeOf(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    return (error as PawlError).code ?? String(error)
  }
  return 'none'
}

const readAll = (bytes: Buffer) => [...readSnapshotFile(bytes, 'count', 'states/f1').blocks()]

describe('snapshot file', () => {
  it('reads what it wrote', () => {
    expect(readSnapshotFile(file, 'count', 'f').header).toEqual(header)
    expect(readAll(file)).toEqual([
      { kind: frameKind.set, runs: [[0, ['a', 1], [{ n: 1 }, null]]] },
      { kind: frameKind.setTagged, runs: [[0, ['ü'], [{ $: 'bigint', v: '5' }]]] },
    ])
  })

  it('is refused when it is cut off at any byte, or goes on after its end', () => {
    for (let length = 0; length < file.length; length++)
      expect(codeOf(() => readAll(file.subarray(0, length)))).toBe('SNAPSHOT_DAMAGED')
    expect(codeOf(() => readAll(Buffer.concat([file, Buffer.of(0)])))).toBe('SNAPSHOT_DAMAGED')
  })

  it('is refused when any one bit is another', () => {
    for (let bit = 0; bit < file.length * 8; bit++) {
      const bytes = Buffer.from(file)
      bytes[bit >> 3] ^= 1 << (bit & 7)
      expect(codeOf(() => readAll(bytes))).toBe('SNAPSHOT_DAMAGED')
    }
  })

  it('is refused when bytes are replaced, taken out or put in anywhere', () => {
    const at = fc.integer({ min: 0, max: file.length })
    fc.assert(
      fc.property(at, fc.integer({ min: 0, max: 20 }), fc.uint8Array({ maxLength: 20 }), (from, length, other) => {
        const bytes = Buffer.concat([file.subarray(0, from), other, file.subarray(from + length)])
        fc.pre(!bytes.equals(file))
        expect(codeOf(() => readAll(bytes))).toBe('SNAPSHOT_DAMAGED')
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    ['lost', [0, 2, 3]],
    ['doubled', [0, 1, 1, 2, 3]],
    ['exchanged', [0, 2, 1, 3]],
  ])('is refused when one of its blocks is %s', (_, order) => {
    expect(codeOf(() => readAll(Buffer.concat(order.map((i) => chunks[i]))))).toBe('SNAPSHOT_DAMAGED')
  })

  it('names operator and file when it is damaged', () => {
    expect(() => readAll(file.subarray(0, 40))).toThrow(/operator "count", file states\/f1: cut off at byte 40/)
    expect(() => readAll(Buffer.from('{"not": "ours"}'))).toThrow(/file states\/f1: not a snapshot file/)
  })

  it('of a newer format is refused as such, not as damage', () => {
    const newer = Buffer.from(chunks[0])
    newer[4] = 2
    newer.writeUInt32LE(crc32c(newer, 0, newer.length - 4), newer.length - 4)
    const bytes = Buffer.concat([newer, ...chunks.slice(1)])
    expect(codeOf(() => readAll(bytes))).toBe('STATE_VERSION_NEWER')
  })

  it('holds no block that the reader does not know', () => {
    const bytes = Buffer.concat(assembleSnapshotFile({ ...header, entries: 1 }, [frame(9, 1, [])]))
    expect(() => readAll(bytes)).toThrow(/SNAPSHOT_DAMAGED.*unknown block 9/)
  })

  it.each([
    ['fewer values than keys', frameKind.set, [[0, ['a', 'b'], [1]]]],
    ['a tag that nobody knows', frameKind.setTagged, [[0, ['a'], [{ $: 'future' }]]]],
    ['no list', frameKind.set, { a: 1 }],
  ])('is refused when a block with a right checksum holds %s', (_, kind, payload) => {
    const bytes = Buffer.concat(assembleSnapshotFile({ ...header, entries: 1 }, [frame(kind, 1, payload)]))
    const listed = { name: 'f', bytes: bytes.length, sha256: '', file: 'base' as const, entries: 1 }
    const { operator, stateVersion, keyGroups } = scope
    const snapshot = { operator, stateVersion, keyGroups, stateKind: 'aggregate', files: [listed] }
    expect(codeOf(() => loadAggregateState(scope, snapshot, [bytes]))).toBe('SNAPSHOT_DAMAGED')
  })

  it('of either kind never loads in silence when it is damaged', () => {
    const aggregate = loadAggregateState<unknown>(scope, null, [])
    const window = loadWindowState<unknown>(scope, null, [])
    for (let key = 0; key < 40; key++) {
      aggregate.set(key, key % 3 === 0 ? new Date(key) : key)
      window.set(key % 4, `k${key}`, { key })
    }
    expect([...window.due(1, 1)].length).toBeGreaterThan(0)
    for (const [stored, load] of [
      [commit(aggregate, nothingStored), loadAggregateState],
      [commit(window, nothingStored), loadWindowState],
    ] as const) {
      const [bytes] = stored.files
      fc.assert(
        fc.property(fc.integer({ min: 0, max: bytes.length - 1 }), fc.integer({ min: 1, max: 255 }), (at, flip) => {
          const damaged = Buffer.from(bytes)
          damaged[at] ^= flip
          expect(codeOf(() => load(scope, stored.snapshot, [damaged]))).toBe('SNAPSHOT_DAMAGED')
          expect(codeOf(() => load(scope, stored.snapshot, [bytes.subarray(0, at)]))).toBe('SNAPSHOT_DAMAGED')
        }),
        { numRuns: 300 },
      )
    }
  })
})
