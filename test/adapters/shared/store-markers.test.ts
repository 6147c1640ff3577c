import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type MemoryStore, memoryStore } from '../../../lib/adapters/memory/store.ts'
import type { RefusedRowRecord } from '../../../lib/adapters/shared/refused-rows.ts'
import {
  refusedCount,
  rowsWritten,
  type StoreMarkers,
  storeMarkers,
} from '../../../lib/adapters/shared/store-markers.ts'
import type { Marker } from '../../../lib/model/manifest.ts'
import { prng } from '../../../lib/model/prng.ts'
import type { Store } from '../../../lib/ports/store.ts'

const prefix = 'markers/p/s/0/'
const markerOf = (epoch: number): Marker => ({ incarnation: 'i', epoch, hash: `${epoch}`.padStart(16, 'a').repeat(4) })
const hash = (epoch: number) => markerOf(epoch).hash.slice(0, 16)
const record = (epoch: number, row: number): RefusedRowRecord => {
  const bytes = { key: null, value: Buffer.from(`${epoch}/${row}`).toString('base64'), cutBytes: 0 }
  return { incarnation: 'i', epoch, row, code: 'C', column: null, reason: 'no', ...bytes }
}
const all = { rows: 1000, bytes: 1e6 }
const places = async (markers: StoreMarkers) =>
  (await markers.refused(0, all)).map(({ epoch, row }) => `${epoch}/${row}`)
const below = (store: MemoryStore) => store.names().map((name) => name.slice(prefix.length))

/** One promotion of an epoch of three blocks of ten rows; the rows of `refused` are. */
async function promote(markers: StoreMarkers, epoch: number, refused: readonly number[] = []) {
  const [prev, next] = [epoch === 0 ? null : markerOf(epoch - 1), markerOf(epoch)]
  for (const end of [10, 20, 30]) {
    const place = await markers.look(0)
    if (place.marker?.epoch !== prev?.epoch) return place
    const mine = refused.filter((row) => row < end && row >= end - 10).map((row) => record(epoch, row))
    if (mine.length > 0) await markers.decide(0, place, next, end, mine)
    else if (end < 30) await markers.note(0, place, next, end)
  }
  return markers.move(0, prev, next)
}

describe('markers in the store', () => {
  test('are written as earlier versions wrote them, while no row is refused', async () => {
    const store = memoryStore()
    const markers = storeMarkers(store, 'p', 's')
    await markers.move(0, null, markerOf(0))
    const place = await markers.look(0)
    await markers.note(0, place, markerOf(1), 7)
    const written = below(store).map((name) => [name, store.snapshot().get(`${prefix}${name}`)?.toString()])
    expect(written).toEqual([
      ['000000000001', `{"version":1,"marker":${JSON.stringify(markerOf(0))}}\n`],
      [`000000000001.${hash(1)}.000000000007`, '{"version":1}\n'],
    ])
    expect(rowsWritten(await markers.look(0), markerOf(1))).toBe(7)
  })

  test('are read as earlier versions wrote them, with the refused rows of an epoch that was under way', async () => {
    const store = memoryStore()
    await store.create(`${prefix}000000000041`, [
      Buffer.from(`{"version":1,"marker":${JSON.stringify(markerOf(6))}}\n`),
    ])
    await store.create(`${prefix}000000000041.${hash(7)}.000000000010`, [Buffer.from('{"version":1}\n')])
    const markers = storeMarkers(store, 'p', 's')
    expect(await markers.look(0)).toMatchObject({ sequence: 41, since: 41, marker: markerOf(6), refusals: [] })
    await promote(markers, 7, [25])
    expect(await places(markers)).toEqual(['7/25'])
    expect(below(store)).toEqual([`000000000041.${hash(7)}.r000000000030`, '000000000042'])
  })

  test('are read as this version writes them, with refused rows', async () => {
    const store = memoryStore()
    const [entry, note] = ['000000000009', `000000000004.${hash(6)}.r000000000020`]
    const refused = [{ ...record(6, 12) }, { ...record(6, 15) }]
    const texts = {
      [entry]: `{"version":2,"marker":${JSON.stringify(markerOf(7))},"since":8,"refused":[{"note":"${note}","recording":"00ff","epoch":6,"rows":[15]}]}\n`,
      [note]: `{"version":2,"recording":"00ff","refused":${JSON.stringify(refused)}}\n`,
      [`000000000008.${hash(8)}.000000000010`]: '{"version":1}\n',
    }
    for (const [name, body] of Object.entries(texts)) await store.create(`${prefix}${name}`, [Buffer.from(body)])
    const markers = storeMarkers(store, 'p', 's')
    const place = await markers.look(0)
    expect(place).toMatchObject({ sequence: 9, since: 8, marker: markerOf(7) })
    expect(rowsWritten(place, markerOf(8))).toBe(10)
    expect(await markers.refused(0, all)).toEqual([{ ...record(6, 15), id: '00ff-15' }])
    // And what is written now looks the same.
    const other = storeMarkers(store, 'p', 'other')
    await other.move(0, null, markerOf(6))
    await other.decide(0, await other.look(0), markerOf(7), 20, refused)
    await other.move(0, markerOf(6), markerOf(7))
    const written = [...store.snapshot()].filter(([name]) => name.startsWith('markers/p/other/'))
    const [first, second] = written.map(([, bytes]) => bytes.toString().replaceAll(/[0-9a-f]{16}(?=")/g, 'R'))
    expect(first).toBe(`{"version":2,"recording":"R","refused":${JSON.stringify(refused)}}\n`)
    expect(second).toMatch(
      /^\{"version":2,"marker":\{.*\},"since":2,"refused":\[\{"note":"0{11}1\.[0-9a-fR]*\.r0{10}20","recording":"R","epoch":7,"rows":\[12,15\]\}\]\}\n$/,
    )
  })

  test('with refused rows are not taken for progress by versions that do not know them', async () => {
    const store = memoryStore()
    const markers = storeMarkers(store, 'p', 's')
    await promote(markers, 0)
    await markers.decide(0, await markers.look(0), markerOf(1), 10, [record(1, 4)])
    const [note] = below(store).filter((name) => name.includes('.'))
    // As they read it: the third part of the name is a number of rows.
    expect(Number(note!.split('.')[2])).toBeNaN()
    expect(rowsWritten(await markers.look(0), markerOf(1))).toBe(10)
  })

  test('of a later version stop whoever reads them', async () => {
    const store = memoryStore()
    await store.create(`${prefix}000000000001`, [Buffer.from('{"version":3,"marker":null}\n')])
    await expect(storeMarkers(store, 'p', 's').look(0)).rejects.toMatchObject({ code: 'MARKER_UNKNOWN' })
  })
})

describe('refused rows of a lane', () => {
  test('are kept over epochs, by epoch and row, until each is forgotten; then nothing of them is left', async () => {
    const store = memoryStore()
    const markers = storeMarkers(store, 'p', 's')
    await promote(markers, 0)
    expect(refusedCount(await promote(markers, 1, [3, 12]), markerOf(1))).toBe(2)
    expect(refusedCount(await promote(markers, 2), markerOf(2))).toBe(0)
    expect(refusedCount(await promote(markers, 3, [0]), markerOf(3))).toBe(1)
    expect(await places(markers)).toEqual(['1/3', '1/12', '3/0'])
    expect(await markers.refused(0, { rows: 2, bytes: 1e6 })).toHaveLength(2)
    const [first, second, third] = await markers.refused(0, all)
    await markers.forget(0, [second!.id, third!.id, 'nobody'])
    expect(await places(markers)).toEqual(['1/3'])
    const { sequence } = await markers.look(0)
    await markers.forget(0, [second!.id])
    expect((await markers.look(0)).sequence).toBe(sequence)
    await markers.forget(0, [first!.id])
    expect((await markers.look(0)).marker).toEqual(markerOf(3))
    await promote(markers, 4)
    expect(below(store)).toEqual([expect.stringMatching(/^\d{12}$/)])
  })

  test('are what the first note says, for everybody', async () => {
    const store = memoryStore()
    const markers = storeMarkers(store, 'p', 's')
    await promote(markers, 0)
    const place = await markers.look(0)
    const first = await markers.decide(0, place, markerOf(1), 30, [record(1, 4)])
    expect(await markers.decide(0, place, markerOf(1), 30, [record(1, 5)])).toEqual(first)
    expect(await markers.noted(0, await markers.look(0), markerOf(1))).toEqual(first)
    await markers.move(0, markerOf(0), markerOf(1))
    expect(await markers.refused(0, all)).toEqual(first)
    // Who comes late decides nothing, and what they wrote goes.
    expect(await markers.decide(0, place, markerOf(1), 20, [record(1, 15)])).toBeNull()
    await promote(markers, 2)
    expect(await places(markers)).toEqual(['1/4'])
    expect(below(store).filter((name) => name.includes('.'))).toHaveLength(1)
  })

  test('may be forgotten while the next epoch is being written, whose notes stay', async () => {
    const markers = storeMarkers(memoryStore(), 'p', 's')
    await promote(markers, 0)
    await promote(markers, 1, [1])
    const [row] = await markers.refused(0, all)
    await markers.decide(0, await markers.look(0), markerOf(2), 10, [record(2, 8)])
    await markers.forget(0, [row!.id])
    const place = await markers.look(0)
    expect(rowsWritten(place, markerOf(2))).toBe(10)
    expect(await markers.noted(0, place, markerOf(2))).toHaveLength(1)
    await markers.move(0, markerOf(1), markerOf(2))
    expect(await places(markers)).toEqual(['2/8'])
  })

  test('stay when a person replaces or resets the marker, and come again when their epoch does', async () => {
    const markers = storeMarkers(memoryStore(), 'p', 's')
    await promote(markers, 0)
    await promote(markers, 1, [1])
    await markers.move(0, markerOf(1), markerOf(0))
    await promote(markers, 1, [1, 2])
    expect(await places(markers)).toEqual(['1/1', '1/1', '1/2'])
    const ids = (await markers.refused(0, all)).map(({ id }) => id)
    expect(new Set(ids).size).toBe(3)
    await markers.move(0, markerOf(1), null)
    expect(await markers.look(0)).toMatchObject({ marker: null })
    await markers.forget(0, ids.slice(0, 2))
    expect(await places(markers)).toHaveLength(1)
  })

  test('are not left behind when a person moves the marker away and back under a promoter', async () => {
    const markers = storeMarkers(memoryStore(), 'p', 's')
    await promote(markers, 0)
    const { since } = await markers.look(0)
    await markers.decide(0, await markers.look(0), markerOf(1), 30, [record(1, 4)])
    await markers.move(0, markerOf(0), null)
    await markers.move(0, null, markerOf(0))
    expect(await markers.move(0, markerOf(0), markerOf(1), since)).toMatchObject({ marker: markerOf(0) })
  })

  test('that are lost or damaged in the store are told', async () => {
    const store = memoryStore()
    const markers = storeMarkers(store, 'p', 's')
    await promote(markers, 0)
    await promote(markers, 1, [1])
    const note = store.names().find((name) => name.slice(prefix.length).includes('.'))!
    const snapshot = store.snapshot()
    store.drop(note)
    await expect(markers.refused(0, all)).rejects.toMatchObject({ code: 'OBJECT_MISSING' })
    store.restore(snapshot)
    await store.delete([note])
    await store.create(note, [Buffer.from('{"version":2')])
    await expect(markers.refused(0, all)).rejects.toMatchObject({ code: 'OBJECT_DAMAGED' })
  })
})

/** A store in which others run between any two calls. */
function crowded(inner: Store, random: ReturnType<typeof prng>): Store {
  const between = async <T>(deed: () => Promise<T>): Promise<T> => {
    for (let turns = random.int(4); turns > 0; turns--) await turn()
    const answer = await deed()
    for (let turns = random.int(3); turns > 0; turns--) await turn()
    return answer
  }
  return {
    create: (name, chunks) => between(() => inner.create(name, chunks)),
    read: (name, range) => between(() => inner.read(name, range)),
    async *list(of) {
      await between(async () => undefined)
      yield* inner.list(of)
    },
    delete: (names) => between(() => inner.delete(names)),
    close: async () => {},
  }
}

test.each(Array.from({ length: 40 }, (_, seed) => seed))(
  'promoters and forgetters at once lose no refusal, record none twice and agree (seed %i)',
  async (seed) => {
    const random = prng(seed)
    const store = memoryStore()
    const clients = Array.from({ length: 3 }, () => storeMarkers(crowded(store, random), 'p', 's'))
    const plain = storeMarkers(store, 'p', 's')
    await promote(plain, 0)
    const carried: string[] = []
    const stale: string[][] = []
    for (let epoch = 1; epoch <= 5; epoch++) {
      const refused = random.int(3) === 0 ? [] : [random.int(30), 29]
      const deeds = clients.map((client) => promote(client, epoch, [...new Set(refused)]))
      // Late forgetters of earlier epochs come in between.
      await Promise.all([...deeds, ...stale.map((ids, index) => clients[index % 3]!.forget(0, ids))])
      expect((await plain.look(0)).marker).toEqual(markerOf(epoch))
      const recorded = await plain.refused(0, all)
      const newest = recorded.filter((row) => row.epoch === epoch).map(({ row }) => row)
      expect(newest).toEqual([...new Set(refused)].sort((a, b) => a - b))
      const some = recorded.slice(0, random.int(recorded.length + 1))
      carried.push(...some.map((row) => `${row.epoch}/${row.row}`))
      const ids = some.map(({ id }) => id)
      stale.push(ids)
      await Promise.all(clients.map((client) => client.forget(0, ids)))
      const left = recorded.filter((row) => !some.includes(row)).map((row) => `${row.epoch}/${row.row}`)
      expect(await places(plain)).toEqual(left)
    }
    expect(new Set(carried).size).toBe(carried.length)
    await promote(plain, 6)
    const notes = below(store).filter((name) => name.includes('.'))
    expect(notes.length).toBeLessThanOrEqual((await places(plain)).length)
    expect(below(store).filter((name) => !name.includes('.'))).toHaveLength(1)
  },
)
