import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AttributeMap, bytesOf } from '../../../lib/adapters/dynamodb/attributes.ts'
import type { DynamoForm } from '../../../lib/adapters/dynamodb/sink-form.ts'
import type { OpenLane } from '../../../lib/adapters/dynamodb/sink-marker.ts'
import { recordedBytesMax, recordingOf } from '../../../lib/adapters/dynamodb/sink-refused.ts'
import type { RefusedRowRecord } from '../../../lib/adapters/shared/refused-rows.ts'
import { limits } from '../../../lib/model/limits.ts'

const lane = { stage: 's', pipeline: 'p'.repeat(60), sink: 'k'.repeat(60), lane: 39 }
const open = { table: null, form: {} as DynamoForm, lane } as unknown as OpenLane

const refusal = (row: number, bytes: number): RefusedRowRecord => ({
  ...{ incarnation: 'i'.repeat(36), epoch: 7, row, code: 'ValidationException', column: null, cutBytes: 0 },
  ...{ reason: 'r'.repeat(300), key: Buffer.alloc(800).toString('base64') },
  value: Buffer.alloc(bytes, 1).toString('base64'),
})

const chunksOf = (rows: readonly RefusedRowRecord[]) => {
  const { puts, bytes } = recordingOf(open, 'refused', rows)
  return { bytes, items: puts.map(({ Put }) => Put.Item as unknown as AttributeMap) }
}

test('whatever is recorded fits into items, in order, and weighs no more than is said', () => {
  const sizes = fc.array(
    fc.oneof(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: limits.rejectedBytesMax })),
    {
      minLength: 1,
      maxLength: 30,
    },
  )
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 20 }), (all, repeated) => {
      const rows = Array.from({ length: all.length * repeated }, (_, row) =>
        refusal(row, row < all.length ? all[row]! : 40),
      )
      const { items, bytes } = chunksOf([...rows].reverse())
      const recorded = items.flatMap((item) => Object.values((item.rows as { M: Record<string, { S: string }> }).M))
      expect(recorded.map(({ S }) => JSON.parse(S))).toEqual(rows)
      const keys = items.map((item) => (item.sk as { S: string }).S)
      expect([...keys].sort()).toEqual(keys)
      for (const item of items) expect(bytesOf(item)).toBeLessThan(limits.itemBytesMax)
      expect(items.reduce((sum, item) => sum + bytesOf(item), 0)).toBeLessThanOrEqual(bytes)
    }),
    { numRuns: 30 },
  )
})

test('what one transaction may record is no more than its items', () => {
  for (const bytes of [0, 3000, 100_000, limits.rejectedBytesMax]) {
    for (let count = 1; count <= limits.refusedPerPromotionMax; count = Math.ceil(count * 1.7)) {
      const { items, bytes: sum } = chunksOf(Array.from({ length: count }, (_, row) => refusal(row, bytes)))
      if (sum > recordedBytesMax) break
      expect(items.length).toBeLessThan(100)
    }
  }
})
