import { expect, test } from 'vitest'
import { memoryLedger } from '../../../lib/adapters/memory/ledger.ts'
import { memoryStore } from '../../../lib/adapters/memory/store.ts'
import { sampleHead, sampleItem } from '../../../lib/testing/contracts/heads.ts'

test('rewinds a ledger to a point in time, more than once', async () => {
  const ledger = memoryLedger()
  await ledger.create(sampleHead('p', 1), sampleItem(0))
  const snapshot = ledger.snapshot()
  for (let round = 0; round < 2; round++) {
    expect(await ledger.swap(1, sampleHead('p', 2), { history: sampleItem(1) })).toBe('swapped')
    await ledger.ring('p')
    ledger.restore(snapshot)
    expect((await ledger.read('p'))?.revision).toBe(1)
    expect(await ledger.history('p', 1)).toBe(null)
    expect(await ledger.wakes('p')).toBe(0)
  }
  ledger.dropHistory('p', 0)
  expect(await ledger.history('p', 0)).toBe(null)
})

test('drops, damages and restores objects', async () => {
  const store = memoryStore()
  await store.create('a', [Buffer.from('abc')])
  await store.create('b', [])
  const snapshot = store.snapshot()
  store.damage('a')
  store.damage('b')
  expect((await store.read('a'))?.toString()).toBe('acc')
  expect((await store.read('b'))?.length).toBe(1)
  store.drop('a')
  expect(store.names()).toEqual(['b'])
  expect(() => store.drop('a')).toThrow('ASSERTION_FAILED')
  expect(() => store.damage('a')).toThrow('ASSERTION_FAILED')
  store.restore(snapshot)
  expect(store.names()).toEqual(['a', 'b'])
  expect((await store.read('a'))?.toString()).toBe('abc')
})
