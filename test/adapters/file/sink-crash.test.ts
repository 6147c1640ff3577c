import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startChild } from '../../support/child.ts'
import { mountDiskImage } from '../../support/disk-image.ts'
import { checkAppends, checkEpochs, promotedOf, takeFiles } from './sink-survivors.ts'

const writer = new URL('./sink-writer.ts', import.meta.url)
const kills = 24
const cuts = 8

test(`shows each epoch and keeps each append once, killed ${kills} times, to a reader that takes files away`, {
  timeout: 120_000,
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-sink-crash-'))
  const lines: string[] = []
  let epochs = 0
  for (let round = 0; round < kills; round++) {
    // Every third round two runs work at once, one of them a zombie.
    const children = Array.from({ length: round % 3 === 2 ? 2 : 1 }, (_, i) =>
      startChild(writer, [directory, `w${round}x${i}`]),
    )
    try {
      await until(() => {
        takeFiles(directory, 0.5)
        return children.every((child) => child.lines.length >= 8)
      })
      const killAt = Date.now() + Math.random() * 60
      for (; Date.now() < killAt; await sleep(1)) takeFiles(directory, 0.5)
    } finally {
      for (const child of children) child.kill('SIGKILL')
    }
    for (const child of children) expect((await child.ended).signal).toBe('SIGKILL')
    lines.push(...children.flatMap((child) => child.lines))
    takeFiles(directory, 0.3)
    epochs = await checkEpochs(directory, promotedOf(lines))
    await checkAppends(directory, lines)
  }
  expect(epochs).toBeGreaterThan(kills)
  rmSync(directory, { recursive: true })
})

test(`shows each epoch and keeps each append once when the power is cut, ${cuts} times`, {
  timeout: 120_000,
}, async (context) => {
  const disk = mountDiskImage()
  if (typeof disk === 'string') return context.skip(disk)
  const lines: string[] = []
  try {
    for (let round = 0; round < cuts; round++) {
      const child = startChild(writer, [disk.path, `w${round}`])
      try {
        await until(() => child.lines.length >= 8)
        await sleep(Math.random() * 60)
        child.kill('SIGSTOP')
        // What it printed before it stopped may still be on its way to us.
        await sleep(20)
        const printed = [...lines, ...child.lines]
        const epochs = await disk.afterPowerCut(async (path) => {
          await checkAppends(path, printed)
          return checkEpochs(path, promotedOf(printed))
        })
        expect(epochs).toBeGreaterThan(round)
      } finally {
        // A stopped process would outlive the test and keep the file system busy.
        child.kill('SIGKILL')
        await child.ended
      }
      lines.push(...child.lines)
    }
  } finally {
    disk.unmount()
  }
})

async function until(condition: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 20_000; !condition(); await sleep(1)) {
    if (Date.now() > deadline) throw new Error('the writer printed nothing')
  }
}
