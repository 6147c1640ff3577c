import { describe, expect, test } from 'vitest'
import { markerAfter, sameMarker } from '../../lib/adapters/shared/markers.ts'
import { jsonRows, jsonWriter } from '../../lib/adapters/shared/staged-lines.ts'
import type { Marker } from '../../lib/model/manifest.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkSizeContractOf } from '../../lib/testing/contracts/sink-size.ts'
import { littleHeld, manyRows, measured } from '../support/sink-sizes.ts'

type Sabotage = 'reads-all' | 'stages-all' | 'loses-rows'

/** A sink that counts rows in place of writing them, and whoever promotes waits a moment for each piece. */
function counting(store: Store, sabotage: Sabotage | null) {
  const markers = new Map<number, Marker>()
  const kept: unknown[] = []
  let count = 0
  const write = async (rows: readonly unknown[]) => {
    await new Promise((resolve) => setImmediate(resolve))
    count += rows.length
  }
  const sink: Sink = {
    target: 'counting',
    limits: { laneRowsMax: 1_000_000, laneBytesMax: 256 * 1024 * 1024 },
    async stage(context) {
      const writer = jsonWriter(context, (value, _, at) => ({ key: null, row: [value, at] }))
      if (sabotage !== 'stages-all') return writer
      return {
        bufferedBytes: 0,
        add(key, value, at, partition) {
          kept.push(Buffer.from(String(value)))
          writer.add(key, value, at, partition)
        },
        flush: () => writer.flush(),
        seal: () => writer.seal(),
      }
    },
    async base(lane, marker) {
      markers.set(lane, markers.get(lane) ?? marker)
      return markers.get(lane)!
    },
    async promote(committable, permit) {
      const found = markers.get(committable.lane) ?? null
      if (!sameMarker(found, committable.prev)) return { result: 'refused', found }
      const all: unknown[] = []
      for await (const rows of jsonRows(store, committable)) {
        if (sabotage === 'reads-all') all.push(...rows)
        else await write(sabotage === 'loses-rows' ? rows.slice(1) : rows)
      }
      await write(all)
      markers.set(committable.lane, markerAfter(committable, permit))
      return { result: 'promoted' }
    },
    marker: async (lane) => markers.get(lane) ?? null,
    async close() {},
  }
  return { sink, count: async () => count, heldBytesMax: littleHeld }
}

/** Runs the size contract against it. */
async function sized(sabotage: Sabotage | null): Promise<void> {
  const implementation = measured(`${sabotage}`, async (store) => counting(store, sabotage))
  for (const { run } of contractCases(sinkSizeContractOf(manyRows), implementation)) await run()
}

describe('the contract of size', () => {
  test('finds nothing wrong with a sink that goes on piece by piece', async () => {
    await expect(sized(null)).resolves.toBeUndefined()
  })

  test.each<[Sabotage, RegExp]>([
    ['reads-all', /^promotion held \d{8,} bytes/],
    ['stages-all', /^staging held \d{8,} bytes/],
    ['loses-rows', /Expected values to be strictly equal/],
  ])('finds the sink with sabotage %s', async (sabotage, message) => {
    await expect(sized(sabotage)).rejects.toThrow(message)
  })
})
