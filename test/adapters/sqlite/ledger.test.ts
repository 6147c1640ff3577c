import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sqliteLedger } from '../../../lib/adapters/sqlite/ledger.ts'
import { sampleHead, sampleItem } from '../../../lib/testing/contracts/heads.ts'
import { startChild } from '../../support/child.ts'
import { mountSmallDisk } from '../../support/small-disk.ts'

let directory: string
let file: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pawl-sqlite-'))
  file = join(directory, 'ledger.db')
})
afterEach(() => rmSync(directory, { recursive: true }))

/** A closed ledger with some epochs; its write-ahead log is folded into the file. */
async function writtenLedger(epochs = 30): Promise<void> {
  const ledger = sqliteLedger(file)
  await ledger.create(sampleHead('p', 0), sampleItem(0))
  for (let epoch = 1; epoch <= epochs; epoch++) {
    await ledger.swap(epoch - 1, sampleHead('p', epoch), { history: sampleItem(epoch) })
  }
  await ledger.close()
}

const readOnce = async () => {
  const ledger = sqliteLedger(file)
  try {
    return { head: await ledger.read('p'), history: await ledger.histories('p', 0, 1_000) }
  } finally {
    await ledger.close()
  }
}

test('loses no update of several processes on one file', { timeout: 60_000 }, async () => {
  const hammer = new URL('./hammer.ts', import.meta.url)
  const children = ['a', 'b', 'c', 'd'].map((name) => startChild(hammer, [file, name, '40']))
  for (const child of children) expect(await child.ended).toEqual({ code: 0, signal: null })
  expect(children.map(({ lines }) => lines[0]).toSorted()).toEqual(['created', 'exists', 'exists', 'exists'])
  const { head, history } = await readOnce()
  expect(head).toMatchObject({ revision: 160, generation: 160 })
  expect(history.map(({ epoch }) => epoch)).toEqual(Array.from({ length: 161 }, (_, epoch) => epoch))
  const ledger = sqliteLedger(file)
  expect(await ledger.wakes('p')).toBe(160)
  await ledger.close()
})

test('says LEDGER_BUSY when another process keeps the lock, and goes on afterwards', async () => {
  await writtenLedger(1)
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const ledger = sqliteLedger(file, { busyMs: 150 })
  await expect(ledger.swap(1, sampleHead('p', 2))).rejects.toMatchObject({ code: 'LEDGER_BUSY', kind: 'Retryable' })
  await expect(ledger.ring('p')).rejects.toMatchObject({ code: 'LEDGER_BUSY' })
  expect((await ledger.read('p'))?.revision).toBe(1)
  other.exec('ROLLBACK')
  other.close()
  expect(await ledger.swap(1, sampleHead('p', 2))).toBe('swapped')
  await ledger.close()
})

test('waits for a lock while the event loop runs', async () => {
  await writtenLedger(1)
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  setTimeout(() => other.exec('ROLLBACK'), 150)
  const ledger = sqliteLedger(file)
  expect(await ledger.swap(1, sampleHead('p', 2))).toBe('swapped')
  await ledger.close()
  other.close()
})

test('bad input: refuses a ledger file of a newer version and does not touch it', async () => {
  await writtenLedger(1)
  const database = new DatabaseSync(file)
  database.exec('PRAGMA user_version = 2; PRAGMA journal_mode = DELETE')
  database.close()
  const before = readFileSync(file)
  await expect(readOnce()).rejects.toMatchObject({
    code: 'LEDGER_TOO_NEW',
    kind: 'Invalid',
    message: expect.stringMatching(/ledger\.db has version 2, this Pawl knows 1.*Next: run at least that version/),
  })
  expect(readFileSync(file).equals(before)).toBe(true)
})

test('bad input: refuses a ledger file that is no database', async () => {
  writeFileSync(file, 'this is not a database, whatever its name says '.repeat(100))
  await expect(readOnce()).rejects.toMatchObject({
    code: 'LEDGER_DAMAGED',
    kind: 'Corrupt',
    message: expect.stringMatching(/ledger\.db.*Next: restore it from a backup/),
  })
})

test('bad input: refuses the database of another program', async () => {
  const database = new DatabaseSync(file)
  database.exec('CREATE TABLE notes (text TEXT)')
  database.close()
  await expect(readOnce()).rejects.toMatchObject({ code: 'LEDGER_DAMAGED' })
})

test('bad input: refuses a ledger without its tables', async () => {
  await writtenLedger(1)
  const database = new DatabaseSync(file)
  database.exec('DROP TABLE history')
  database.close()
  await expect(readOnce()).rejects.toMatchObject({ code: 'LEDGER_DAMAGED' })
})

test('bad input: refuses a ledger file that was cut off', async () => {
  await writtenLedger(100)
  const { size } = statSync(file)
  for (const kept of [size - 4096, Math.floor(size / 2), 5000, 100]) {
    copyFileSync(file, `${file}.whole`)
    truncateSync(file, kept)
    await expect(readOnce()).rejects.toMatchObject({ code: 'LEDGER_DAMAGED' })
    copyFileSync(`${file}.whole`, file)
  }
})

test('bad input: a damaged ledger file is refused or reads as it was, never otherwise', {
  timeout: 60_000,
}, async () => {
  await writtenLedger()
  const whole = readFileSync(file)
  const right = await readOnce()
  let refused = 0
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const damaged = Buffer.from(whole)
      damaged[at]! ^= change
      writeFileSync(file, damaged)
      try {
        expect(await readOnce()).toEqual(right)
      } catch (error) {
        if (!(error instanceof Error && 'code' in error)) throw error
        expect(['LEDGER_DAMAGED', 'LEDGER_TOO_NEW']).toContain(error.code)
        refused++
      }
      for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true })
    }),
    { numRuns: 600 },
  )
  expect(refused).toBeGreaterThan(10)
})

test('bad input: makes no new head where a history says that there was one, and goes on with other pipelines', async () => {
  await writtenLedger(2)
  const database = new DatabaseSync(file)
  database.exec('DELETE FROM heads')
  database.close()
  const ledger = sqliteLedger(file)
  expect(await ledger.read('p')).toBe(null)
  await expect(ledger.create(sampleHead('p', 0), sampleItem(0))).rejects.toMatchObject({ code: 'LEDGER_DAMAGED' })
  expect(await ledger.read('p')).toBe(null)
  expect(await ledger.create(sampleHead('q', 0), sampleItem(0))).toBe('created')
  await ledger.close()
})

test('refuses to go on after it was closed', async () => {
  const ledger = sqliteLedger(file)
  await ledger.close()
  await ledger.close()
  await expect(ledger.read('p')).rejects.toMatchObject({ code: 'ASSERTION_FAILED' })
})

test('says LEDGER_UNAVAILABLE when the file cannot be opened', async () => {
  await expect(sqliteLedger(directory).read('p')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' })
  writeFileSync(file, '')
  const below = sqliteLedger(join(file, 'below', 'ledger.db'))
  await expect(below.read('p')).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE' })
})

test('bad input: says DISK_FULL on a full disk, loses nothing, and goes on when there is room', async (context) => {
  const disk = mountSmallDisk()
  if (typeof disk === 'string') return context.skip(disk)
  try {
    const ledger = sqliteLedger(join(disk.path, 'ledger.db'))
    await ledger.create(sampleHead('p', 0), sampleItem(0))
    const ballast = join(disk.path, 'ballast')
    const fill = () => {
      try {
        for (;;) writeFileSync(ballast, Buffer.alloc(4096), { flag: 'a' })
      } catch {}
    }
    fill()
    let revision = 0
    const large = (next: number) => ({ ...sampleHead('p', next), write: 'x'.repeat(50_000) })
    const untilFull = async () => {
      for (;;) {
        await ledger.swap(revision, large(revision + 1), { history: sampleItem(revision + 1) })
        revision++
      }
    }
    await expect(untilFull()).rejects.toMatchObject({ code: 'DISK_FULL', kind: 'Retryable' })
    expect((await ledger.read('p'))?.revision).toBe(revision)
    expect(await ledger.history('p', revision + 1)).toBe(null)
    await expect(sqliteLedger(join(disk.path, 'second.db')).read('p')).rejects.toMatchObject({ code: 'DISK_FULL' })
    rmSync(ballast)
    expect(await ledger.swap(revision, large(revision + 1), { history: sampleItem(revision + 1) })).toBe('swapped')
    await ledger.close()
  } finally {
    disk.unmount()
  }
})
