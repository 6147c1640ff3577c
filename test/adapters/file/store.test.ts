import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fileStore } from '../../../lib/adapters/file/store.ts'
import { processPlace } from '../../../lib/adapters/system/liveness.ts'
import { collected } from '../../../lib/testing/contracts/contract.ts'
import { mountSmallDisk } from '../../support/small-disk.ts'

let directory: string
const partial = () => join(directory, '+partial')

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pawl-file-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test('leaves no temporary file behind, nor an empty directory', async () => {
  const store = fileStore(directory)
  await store.create('a/b/c', [Buffer.alloc(10)])
  await store.create('a/b/c', [Buffer.alloc(20)])
  await store.create('a/d', [])
  expect(readdirSync(partial())).toEqual([])
  await store.delete(['a/b/c'])
  expect(readdirSync(join(directory, 'a'))).toEqual(['d'])
  await store.delete(['a/d'])
  expect(readdirSync(directory)).toEqual(['+partial'])
  expect(await store.create('a/b/c', [])).toBe('created')
  await store.close()
})

test('creates again in a directory that another process removed', async () => {
  const [one, other] = [fileStore(directory), fileStore(directory)]
  for (let round = 0; round < 5; round++) {
    expect(await one.create('a/b/one', [])).toBe('created')
    await other.delete(['a/b/one'])
    expect(existsSync(join(directory, 'a'))).toBe(false)
    if (round % 2 === 1) await other.create('a/b/other', [])
    expect(await one.create('a/b/two', [Buffer.from('x')])).toBe('created')
    await other.delete(['a/b/two', 'a/b/other'])
  }
  await Promise.all([one.close(), other.close()])
})

test('keeps few directories open, however many there are', async () => {
  const store = fileStore(directory)
  const handles = () => readdirSync('/proc/self/fd').length
  const before = handles()
  for (let index = 0; index < 200; index++) await store.create(`a/${index}/x`, [])
  expect(handles() - before).toBeLessThanOrEqual(64)
  await store.close()
  expect(handles()).toBeLessThan(before)
})

test('sweeps temporary files of dead processes and old ones of unknown owners, and no others', () => {
  mkdirSync(partial())
  const place = processPlace().replaceAll(':', '+')
  const parts = place.split('+')
  const dead = [...parts.slice(0, -1), '1'].join('+')
  const foreign = ['linux', 'elsewhere', ...parts.slice(2)].join('+')
  const names = {
    mine: `${place}~1~0`,
    dead: `${dead}~1~0`,
    young: `${foreign}~1~0`,
    old: `${foreign}~1~1`,
    odd: 'odd',
  }
  for (const name of Object.values(names)) writeFileSync(join(partial(), name), 'x')
  const hoursAgo = new Date(Date.now() - 2 * 60 * 60_000)
  for (const name of [names.mine, names.old, names.odd]) utimesSync(join(partial(), name), hoursAgo, hoursAgo)
  fileStore(directory)
  expect(readdirSync(partial()).toSorted()).toEqual([names.mine, names.young].toSorted())
})

test('does not list what is no object', async () => {
  const store = fileStore(directory)
  await store.create('a/1', [])
  writeFileSync(join(directory, 'a', 'notes~'), 'x')
  writeFileSync(join(directory, 'not a name'), 'x')
  mkdirSync(join(directory, 'empty'))
  expect(await collected(store.list(''))).toEqual([{ name: 'a/1', bytes: 0 }])
  expect(await store.read('empty')).toBe(null)
  await store.close()
})

test('refuses a name below another object, and the name of a directory', async () => {
  const store = fileStore(directory)
  await store.create('a', [])
  await store.create('b/c', [])
  await expect(store.create('a/b', [])).rejects.toMatchObject({ code: 'ASSERTION_FAILED' })
  await expect(store.create('b', [])).rejects.toMatchObject({ code: 'ASSERTION_FAILED' })
  expect(await store.read('a/b')).toBe(null)
  expect(readdirSync(partial())).toEqual([])
  await store.close()
})

test('says STORE_UNAVAILABLE, with path and cause, when its directory is gone or is a file', async () => {
  const store = fileStore(join(directory, 'store'))
  rmSync(join(directory, 'store'), { recursive: true })
  const error = await store.create('a/b', [Buffer.alloc(1)]).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', kind: 'Retryable', cause: { code: 'ENOENT' } })
  expect((error as Error).message).toContain(join(directory, 'store', 'a/b'))
  await store.close()
  writeFileSync(join(directory, 'file'), '')
  expect(() => fileStore(join(directory, 'file'))).toThrow(/STORE_UNAVAILABLE.*cannot open the store/)
})

test('bad input: says DISK_FULL on a full disk, shows nothing of the object, and goes on when there is room', async (context) => {
  const disk = mountSmallDisk()
  if (typeof disk === 'string') return context.skip(disk)
  try {
    const store = fileStore(join(disk.path, 'store'))
    await store.create('before', [Buffer.alloc(500_000, 1)])
    for (const chunks of [[Buffer.alloc(600_000)], [Buffer.alloc(300_000), Buffer.alloc(300_000)]]) {
      await expect(store.create('a/large', chunks)).rejects.toMatchObject({
        code: 'DISK_FULL',
        kind: 'Retryable',
        cause: { code: 'ENOSPC' },
        message: expect.stringMatching(/cannot create .*a\/large.*Next: free space/),
      })
      expect(await store.read('a/large')).toBe(null)
      expect(readdirSync(join(disk.path, 'store', '+partial'))).toEqual([])
    }
    const small = async () => {
      for (let index = 0; ; index++) await store.create(`small/${index}`, [Buffer.alloc(4096)])
    }
    await expect(small()).rejects.toMatchObject({ code: 'DISK_FULL' })
    for await (const { name, bytes } of store.list('small/')) {
      expect((await store.read(name))?.length).toBe(4096)
      expect(bytes).toBe(4096)
    }
    await store.delete(['before'])
    expect(await store.create('a/large', [Buffer.alloc(400_000)])).toBe('created')
    await store.close()
  } finally {
    disk.unmount()
  }
})
