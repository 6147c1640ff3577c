import { describe, expect, it } from 'vitest'
import { loadAggregateState } from '../../lib/state/aggregate-state.ts'
import { frameKind, readSnapshotFile } from '../../lib/state/snapshot-file.ts'
import { SnapshotWriter } from '../../lib/state/snapshot-writer.ts'
import { scope } from './support.ts'

const header = { ...scope, stateKind: 'aggregate', file: 'base' as const }

function blocksOf(writer: SnapshotWriter) {
  return [...readSnapshotFile(Buffer.concat(writer.finish(header).chunks), 'count', 'f').blocks()]
}

describe('snapshot writer', () => {
  it('pays for tagged values only in the blocks that hold one', () => {
    const writer = new SnapshotWriter('count')
    for (let key = 0; key < 10_000; key++) writer.set(0, key, key === 5000 ? new Date(key) : key)
    const kinds = blocksOf(writer).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind === frameKind.setTagged)).toHaveLength(1)
    expect(kinds.filter((kind) => kind === frameKind.set).length).toBeGreaterThan(1)
  })

  it('makes blocks of fewer entries when values are large', () => {
    const writer = new SnapshotWriter('count')
    for (let key = 0; key < 2000; key++) writer.set(0, key, 'x'.repeat(10_000))
    const chunks = writer.finish(header).chunks
    expect(Math.max(...chunks.slice(2).map(({ length }) => length))).toBeLessThan(1024 * 1024)
  })

  it('divides a block that is too long for a string, whatever it holds', () => {
    const writer = new SnapshotWriter('count', 100)
    const expected: [number, unknown][] = []
    for (let key = 0; key < 200; key++) {
      const value = key % 50 === 0 ? BigInt(key) : 'x'.repeat(key % 60)
      writer.set(key < 150 ? 0 : 10 * key, key, value)
      expected.push([key, value])
    }
    const chunks = writer.finish(header).chunks
    const bytes = Buffer.concat(chunks)
    const listed = { name: 'f', bytes: bytes.length, sha256: '', file: 'base' as const, entries: 200 }
    const { operator, stateVersion, keyGroups } = scope
    const snapshot = { operator, stateVersion, keyGroups, stateKind: 'aggregate', files: [listed] }
    expect([...loadAggregateState(scope, snapshot, [bytes]).all()]).toEqual(expected)
  })

  it('refuses a value that is too large, naming operator and key', () => {
    const writer = new SnapshotWriter('count', 100)
    writer.set(0, 'small', 1)
    writer.set(0, 'large', 'x'.repeat(100))
    expect(() => writer.finish(header)).toThrow(/ENCODE_FAILED.*operator "count", key "large": it is too large/)
  })

  it.each([
    ['a function', () => 1, 'it is a function'],
    ['an instance of a class deep inside', { list: [{ when: new (class Stamp {})() }] }, '.list[0].when is a Stamp'],
    [
      'a getter',
      {
        get mean() {
          return 1
        },
      },
      '.mean is a getter or setter',
    ],
  ])('refuses %s, naming operator, key and place', (_, value, place) => {
    const state = loadAggregateState<unknown>(scope, null, [])
    state.set('fine', 1)
    state.set('bad', value)
    const encode = () => state.encode(null)
    expect(encode).toThrow(`ENCODE_FAILED: a value does not encode: state of operator "count", key "bad": ${place}`)
    expect(encode).toThrow(expect.objectContaining({ kind: 'Invalid', details: { operator: 'count', key: '"bad"' } }))
  })

  it('shows no more than the beginning of a long key', () => {
    const state = loadAggregateState<unknown>(scope, null, [])
    state.set('k'.repeat(10_000), () => 1)
    expect(() => state.encode(null)).toThrow(/key "k{199}: it is/)
  })
})
