import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
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
