import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Directories } from '../../../lib/adapters/file/directories.ts'

let root: string
let directories: Directories

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pawl-directories-'))
  directories = new Directories(root)
})
afterEach(() => {
  directories.close()
  rmSync(root, { recursive: true, force: true })
})

test('makes a directory with all that is missing above it, once for many who ask', async () => {
  const path = join(root, 'a', 'b', 'c')
  const all = await Promise.all(Array.from({ length: 10 }, () => directories.open(path)))
  expect(new Set(all).size).toBe(1)
  expect(existsSync(path)).toBe(true)
  await Promise.all(all.map((directory) => directory.sync()))
  for (const directory of all) directory.release()
})

test('is not misled by a new directory at the path of a dead one', async () => {
  const path = join(root, 'a')
  const dead = await directories.open(path)
  expect(dead.isAlive()).toBe(true)
  rmdirSync(path)
  mkdirSync(path)
  expect(dead.isAlive()).toBe(false)
  directories.forget(path)
  const alive = await directories.open(path)
  expect(alive).not.toBe(dead)
  expect(alive.isAlive()).toBe(true)
  await dead.sync()
  dead.release()
  alive.release()
})

test('makes a directory anew below a dead one', async () => {
  const inner = await directories.open(join(root, 'a', 'b'))
  inner.release()
  directories.forget(inner.path)
  rmdirSync(join(root, 'a', 'b'))
  rmdirSync(join(root, 'a'))
  mkdirSync(join(root, 'a'))
  const again = await directories.open(join(root, 'a', 'b'))
  expect(again.isAlive()).toBe(true)
  expect(existsSync(join(root, 'a', 'b'))).toBe(true)
  again.release()
})

test('refuses a file where a directory should be, and a root that is gone', async () => {
  writeFileSync(join(root, 'file'), '')
  await expect(directories.open(join(root, 'file'))).rejects.toMatchObject({ code: 'ENOTDIR' })
  await expect(directories.open(join(root, 'file', 'a'))).rejects.toMatchObject({ code: 'ENOTDIR' })
  rmSync(root, { recursive: true })
  await expect(directories.open(join(root, 'a'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
})
