import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { fileStore } from '../../lib/adapters/file/store.ts'
import { collected } from '../../lib/testing/contracts/contract.ts'
import { startChild } from '../support/child.ts'
import { mountDiskImage } from '../support/disk-image.ts'
import { checkSurvivors, leftovers, type Survived, writing } from './crash-survivors.ts'

const writer = new URL('./crash-writer.ts', import.meta.url)
const nothing: Survived = { revision: 0, wakes: 0, objects: 0 }
const kills = 24
const cuts = 10

test(`loses nothing that returned and shows nothing in part, killed ${kills} times`, { timeout: 120_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-crash-'))
  let survived = nothing
  for (let round = 0; round < kills; round++) {
    const child = startChild(writer, [directory, `${round}`])
    await writing(child, 20)
    await sleep(Math.random() * 60)
    child.kill('SIGKILL')
    expect((await child.ended).signal).toBe('SIGKILL')
    survived = await checkSurvivors(directory, round, child.lines, survived)
    expect(leftovers(directory)).toEqual([])
  }
  expect(survived.objects).toBeGreaterThan(kills)
  expect(survived.revision).toBeGreaterThan(kills)
  rmSync(directory, { recursive: true })
})

test(`loses nothing that returned when the power is cut, ${cuts} times`, { timeout: 120_000 }, async (context) => {
  const disk = mountDiskImage()
  if (typeof disk === 'string') return context.skip(disk)
  try {
    let survived = nothing
    for (let round = 0; round < cuts; round++) {
      const child = startChild(writer, [disk.path, `${round}`])
      try {
        await writing(child, 20)
        await sleep(Math.random() * 60)
        child.kill('SIGSTOP')
        // What it printed before it stopped may still be on its way to us.
        await sleep(20)
        survived = await disk.afterPowerCut((path) => checkSurvivors(path, round, [...child.lines], survived))
      } finally {
        child.kill('SIGKILL')
        await child.ended
      }
    }
    expect(survived.objects).toBeGreaterThan(cuts)
  } finally {
    disk.unmount()
  }
})

async function* listing(path: string) {
  const store = fileStore(path)
  yield* store.list('a/')
  await store.close()
}

test('keeps what is created in a directory that others removed and made again, when the power is cut', async (context) => {
  const disk = mountDiskImage()
  if (typeof disk === 'string') return context.skip(disk)
  const [one, other] = [fileStore(disk.path), fileStore(disk.path)]
  try {
    for (let round = 0; round < 5; round++) {
      await one.create('a/b/before', [])
      await other.delete(['a/b/before'])
      await other.create('a/b/kept', [])
      await one.create(`a/b/${round}`, [Buffer.from('x')])
      const survivors = await disk.afterPowerCut(async (path) => collected(listing(path)))
      expect(survivors.map(({ name }) => name)).toEqual([`a/b/${round}`, 'a/b/kept'])
      await other.delete([`a/b/${round}`, 'a/b/kept'])
    }
  } finally {
    await Promise.all([one.close(), other.close()])
    disk.unmount()
  }
})
