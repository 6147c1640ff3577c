/**
 * What every store must do, whatever keeps its objects: the obligations of `ports/store.ts` as checks.
 *
 * Several clients of one place stand for several processes. Checks race on purpose; none needs a clock.
 */
import assert from 'node:assert/strict'
import type { Store } from '../../ports/store.ts'
import { type Contract, type ContractPlace, collected, type Obligation, refusedWith } from './contract.ts'

type Place = ContractPlace<Store>
type Check = (store: Store, place: Place) => Promise<void>

const bytes = (text: string) => Buffer.from(text)
const textOf = async (store: Store, name: string) => (await store.read(name))?.toString() ?? null
const namesOf = async (store: Store, prefix: string) => (await collected(store.list(prefix))).map(({ name }) => name)
const createAll = (store: Store, names: readonly string[]) =>
  Promise.all(names.map((name) => store.create(name, [bytes(name)])))

/** Bytes that show where they stand, so that a swapped or missing chunk is seen. */
function pattern(length: number, seed: number): Buffer {
  const buffer = Buffer.alloc(length)
  for (let at = 0; at + 4 <= length; at += 4) buffer.writeUInt32LE((at ^ Math.imul(seed, 0x9e3779b1)) >>> 0, at)
  return buffer
}

const creating: Record<string, Check> = {
  'creates an object and reads it back': async (store) => {
    assert.equal(await store.create('a/b', [bytes('hello')]), 'created')
    const object = await store.read('a/b')
    assert.ok(Buffer.isBuffer(object))
    assert.equal(object.toString(), 'hello')
  },
  'concatenates chunks, empty ones among them': async (store) => {
    const chunks = Array.from({ length: 3_000 }, (_, index) => pattern(index % 7, index))
    assert.equal(await store.create('chunks', chunks), 'created')
    assert.deepEqual(await store.read('chunks'), Buffer.concat(chunks))
  },
  'holds empty objects, which are not absent ones': async (store) => {
    assert.equal(await store.create('empty/none', []), 'created')
    assert.equal(await store.create('empty/one', [Buffer.alloc(0)]), 'created')
    assert.deepEqual(await store.read('empty/none'), Buffer.alloc(0))
    assert.deepEqual(await store.read('empty/one'), Buffer.alloc(0))
    assert.equal(await store.create('empty/none', [bytes('later')]), 'exists')
    assert.equal(await store.read('empty/absent'), null)
  },
  'holds an object of 32 MiB in chunks': async (store) => {
    const chunks = Array.from({ length: 33 }, (_, index) => pattern(index === 0 ? 5 : 1024 * 1024, index))
    assert.equal(await store.create('large', chunks), 'created')
    const whole = Buffer.concat(chunks)
    assert.ok(whole.equals((await store.read('large'))!))
    const range = { start: 20_000_003, end: 29_999_999 }
    assert.ok(whole.subarray(range.start, range.end).equals((await store.read('large', range))!))
    assert.deepEqual(await collected(store.list('large')), [{ name: 'large', bytes: whole.length }])
  },
  'never replaces an object': async (store) => {
    await store.create('a', [bytes('first')])
    assert.equal(await store.create('a', [bytes('second')]), 'exists')
    assert.equal(await store.create('a', [bytes('first')]), 'exists')
    assert.equal(await textOf(store, 'a'), 'first')
  },
  'lets one of many writers of a name create it, and the others see it whole': async (store, place) => {
    const stores = [store, await place.open(), await place.open(), await place.open()]
    for (let round = 0; round < 5; round++) {
      const name = `round/${round}/object`
      const results = await Promise.all(
        Array.from({ length: 16 }, async (_, writer) => {
          const client = stores[writer % stores.length]!
          const result = await client.create(name, [pattern(100_000, writer), bytes(`${writer}`)])
          return { writer, result, seen: await client.read(name) }
        }),
      )
      const winners = results.filter(({ result }) => result === 'created')
      assert.equal(winners.length, 1)
      const { writer } = winners[0]!
      const object = Buffer.concat([pattern(100_000, writer), bytes(`${writer}`)])
      for (const { seen } of results) assert.ok(object.equals(seen!))
    }
  },
  'shows nothing or the whole object while it is written': async (store, place) => {
    const reader = await place.open()
    const object = pattern(4 * 1024 * 1024, 1)
    let writing = true
    const write = store.create('slow/object', [object]).finally(() => {
      writing = false
    })
    for (let turn = 0; writing; turn++) {
      const seen = await reader.read('slow/object')
      assert.ok(seen === null || object.equals(seen))
      for (const listed of await collected(reader.list('slow/'))) assert.equal(listed.bytes, object.length)
      await reader.create(`turn/${turn}`, [])
    }
    assert.equal(await write, 'created')
  },
  'keeps no hold on the buffers of its caller': async (store) => {
    const given = bytes('given')
    await store.create('a', [given])
    given.fill(0)
    const taken = await store.read('a')
    assert.equal(taken!.toString(), 'given')
    taken!.fill(0)
    assert.equal(await textOf(store, 'a'), 'given')
  },
  'holds an object whose name continues the name of another': async (store) => {
    assert.equal(await store.create('a', [bytes('outer')]), 'created')
    assert.equal(await store.create('a/b', [bytes('inner')]), 'created')
    assert.equal(await textOf(store, 'a'), 'outer')
    assert.deepEqual(await namesOf(store, 'a'), ['a', 'a/b'])
  },
}

const reading: Record<string, Check> = {
  'reads ranges, cut off where the object ends': async (store) => {
    await store.create('a', [bytes('0123'), bytes('456789')])
    const range = async (start: number, end: number) => (await store.read('a', { start, end }))?.toString()
    assert.equal(await range(0, 10), '0123456789')
    assert.equal(await range(2, 6), '2345')
    assert.equal(await range(9, 10), '9')
    assert.equal(await range(4, 4), '')
    assert.equal(await range(7, 100), '789')
    assert.equal(await range(10, 20), '')
    assert.equal(await range(50, 60), '')
    assert.equal(await store.read('absent', { start: 0, end: 1 }), null)
  },
  'lets other clients see an object as soon as it is created': async (store, place) => {
    const other = await place.open()
    for (let index = 0; index < 20; index++) {
      assert.equal(await other.read(`a/${index}`), null)
      await store.create(`a/${index}`, [bytes(`${index}`)])
      assert.equal(await textOf(other, `a/${index}`), `${index}`)
      assert.equal((await namesOf(other, 'a/')).length, index + 1)
      assert.equal(await other.create(`a/${index}`, []), 'exists')
    }
  },
  'keeps objects when it is closed and opened again': async (store, place) => {
    await createAll(store, ['a/1', 'a/2', 'b'])
    await store.delete(['a/2'])
    await store.close()
    const again = await place.open()
    assert.deepEqual(await namesOf(again, ''), ['a/1', 'b'])
    assert.equal(await textOf(again, 'a/1'), 'a/1')
    assert.equal(await again.create('b', []), 'exists')
  },
}

const listing: Record<string, Check> = {
  'lists in the order of the bytes of whole names': async (store) => {
    const sorted = ['B', 'a-', 'a-/z', 'a.b', 'a/', 'a0', 'a=b', 'aB', 'a_', 'aa', 'b/0', 'b/10', 'b/2', 'b0']
    const names = sorted.map((name) => (name.endsWith('/') ? `${name}x` : name)).filter((name) => name !== 'a-')
    await createAll(store, names.toReversed())
    assert.deepEqual(await namesOf(store, ''), names)
  },
  'lists by prefixes that end inside a part': async (store) => {
    await createAll(store, ['epoch/1/a', 'epoch/10/a', 'epoch/12', 'epoch/2', 'epochs', 'other'])
    assert.deepEqual(await namesOf(store, 'epoch/1'), ['epoch/1/a', 'epoch/10/a', 'epoch/12'])
    assert.deepEqual(await namesOf(store, 'epoch/1/'), ['epoch/1/a'])
    assert.deepEqual(await namesOf(store, 'epoch'), ['epoch/1/a', 'epoch/10/a', 'epoch/12', 'epoch/2', 'epochs'])
    assert.deepEqual(await namesOf(store, 'epoch/12'), ['epoch/12'])
    assert.deepEqual(await namesOf(store, 'epoch/12/'), [])
    assert.deepEqual(await namesOf(store, 'p'), [])
    assert.equal((await namesOf(store, '')).length, 6)
  },
  'lists more objects than a page, with their sizes': async (store) => {
    const names = Array.from({ length: 1_100 }, (_, index) => `n/${index % 3}/${String(index).padStart(5, '0')}`)
    await createAll(store, names)
    const expected = names.toSorted().map((name) => ({ name, bytes: name.length }))
    assert.deepEqual(await collected(store.list('n/')), expected)
    await store.delete(names)
    assert.deepEqual(await collected(store.list('n/')), [])
  },
  'lists everything that was there before, once and in order, while others write and delete': async (store, place) => {
    const other = await place.open()
    const before = Array.from({ length: 60 }, (_, index) => `l/${index % 6}/${index}`)
    await createAll(store, before)
    const seen: string[] = []
    let index = 0
    for await (const { name } of store.list('l/')) {
      seen.push(name)
      await other.create(`l/${index % 8}/new-${index}`, [])
      await other.create(`l/${index % 8}/gone-${index}`, [])
      await other.delete([`l/${index % 8}/gone-${index++}`])
    }
    assert.deepEqual(seen, [...new Set(seen)].sort())
    assert.deepEqual(
      before.filter((name) => !seen.includes(name)),
      [],
    )
  },
}

const deleting: Record<string, Check> = {
  'deletes, and minds no absent name': async (store) => {
    await createAll(store, ['a/1', 'a/2', 'a/2x', 'b'])
    await store.delete(['a/1', 'absent', 'a/2', 'a/2'])
    await store.delete(['a/1'])
    await store.delete([])
    await store.delete(['b/below', 'a'])
    assert.deepEqual(await namesOf(store, ''), ['a/2x', 'b'])
    assert.equal(await store.read('a/1'), null)
    assert.equal(await store.create('a/1', [bytes('new')]), 'created')
    assert.equal(await textOf(store, 'a/1'), 'new')
  },
  'loses no create to a delete of its neighbours': async (store, place) => {
    const other = await place.open()
    const kept: string[] = []
    const write = async (client: Store, writer: number) => {
      for (let round = 0; round < 40; round++) {
        const name = `d/${round % 3}/e/${writer}-${round}`
        assert.equal(await client.create(name, [bytes(name)]), 'created')
        if (round % 5 === 4) kept.push(name)
        else await client.delete([name])
      }
    }
    await Promise.all([write(store, 0), write(store, 1), write(other, 2), write(other, 3)])
    assert.deepEqual(await namesOf(store, 'd/'), kept.toSorted())
  },
}

const badNames = [
  '',
  '/',
  '/a',
  'a/',
  'a//b',
  '.',
  '..',
  '../a',
  'a/..',
  'a/../b',
  'a/./b',
  'a b',
  'a\\b',
  'ä',
  'a\0',
  'a:b',
  '+partial',
  'a\n',
]

const refusing: Record<string, Check> = {
  'refuses names that are no object names': async (store) => {
    for (const name of [...badNames, 'x'.repeat(256), 'y/'.repeat(600)]) {
      await refusedWith('ASSERTION_FAILED', () => store.create(name, []))
      await refusedWith('ASSERTION_FAILED', () => store.read(name))
      await refusedWith('ASSERTION_FAILED', () => store.delete(['fine', name]))
    }
    for (const prefix of ['/', '/a', '../a', 'a/../b', 'a//', 'a b', 'a\\']) {
      await refusedWith('ASSERTION_FAILED', () => collected(store.list(prefix)))
    }
    assert.deepEqual(await namesOf(store, ''), [])
  },
  'takes names of any legal form': async (store) => {
    const long = Array.from({ length: 5 }, () => 'x'.repeat(200)).join('/')
    const names = ['...', '.a', '=', '-', '_/..a', 'a..', 'x'.repeat(255), long]
    for (const name of names) assert.equal(await store.create(name, [bytes(name)]), 'created', name)
    for (const name of names) assert.equal(await textOf(store, name), name)
    assert.deepEqual(await namesOf(store, ''), names.toSorted())
  },
  'refuses ranges that are none': async (store) => {
    await store.create('a', [bytes('0123')])
    for (const [start, end] of [
      [-1, 2],
      [3, 2],
      [0.5, 2],
      [0, Number.NaN],
      [0, Infinity],
    ] as const) {
      await refusedWith('ASSERTION_FAILED', () => store.read('a', { start, end }))
    }
  },
}

const obligations = Object.entries({ ...creating, ...reading, ...listing, ...deleting, ...refusing })

/** The contract of `Store`. */
export const storeContract: Contract<Store> = {
  port: 'store',
  obligations: obligations.map(
    ([name, check]): Obligation<Store> => ({ name, check: async (place) => check(await place.open(), place) }),
  ),
}
