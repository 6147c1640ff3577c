import { describe, expect, it } from 'vitest'
import { KeyTable } from '../../lib/state/key-table.ts'

describe('key table', () => {
  it('keeps apart a number and its text', () => {
    const table = new KeyTable<string>('op')
    table.set(1, 'number')
    table.set('1', 'text')
    expect([table.get(1), table.get('1')]).toEqual(['number', 'text'])
  })

  it('takes −0 for 0', () => {
    const table = new KeyTable<string>('op')
    table.set(-0, 'zero')
    expect(table.get(0)).toBe('zero')
    expect(Object.is([...table.all()][0][0], 0)).toBe(true)
  })

  it('refuses NaN as a key, naming the operator', () => {
    expect(() => new KeyTable<number>('op').set(Number.NaN, 1)).toThrow(/ENCODE_FAILED.*"op"/)
  })

  it('refuses more keys than fit, and goes on with those that it has', () => {
    const table = new KeyTable<number>('op', 2)
    table.set('a', 1)
    table.set('b', 1)
    expect(() => table.set('c', 1)).toThrow(/STATE_TOO_LARGE.*"op"/)
    expect(table.get('c')).toBeUndefined()
    table.set('a', 2)
    expect(table.get('a')).toBe(2)
  })

  it('touches a key once, in the order of the first touch, and gives what is there in the end', () => {
    const table = new KeyTable<number>('op')
    for (const key of ['b', 'a', 'b', 'c']) table.set(key, (table.get(key) ?? 0) + 1)
    table.delete('a')
    expect([...table.touched()]).toEqual([
      ['b', 2],
      ['c', 1],
    ])
    expect(table.touchedKeys()).toEqual(['b', 'a', 'c'])
    table.settle()
    expect(table.touchedKeys()).toEqual([])
  })

  it('uses the place of deleted keys again without mixing them up', () => {
    const table = new KeyTable<number>('op')
    for (let key = 0; key < 100; key++) table.set(key, key)
    for (let key = 0; key < 100; key += 2) table.delete(key)
    table.settle()
    for (let key = 100; key < 200; key++) table.set(key, key)
    expect(table.entries).toBe(150)
    for (const [key, acc] of table.all()) expect(acc).toBe(key)
    expect(table.get(2)).toBeUndefined()
    expect(table.delete(2)).toBe(false)
  })

  it('brings a key back that was deleted in the same epoch', () => {
    const table = new KeyTable<number>('op')
    table.set('a', 1)
    table.settle()
    table.delete('a')
    expect([table.get('a'), table.entries]).toEqual([undefined, 0])
    table.set('a', 2)
    table.settle()
    expect([table.get('a'), table.entries]).toEqual([2, 1])
  })
})
