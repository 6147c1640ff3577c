import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { fileStore } from '../../lib/adapters/file/store.ts'
import { sqliteLedger } from '../../lib/adapters/sqlite/ledger.ts'
import type { Store } from '../../lib/ports/store.ts'
import { startChild } from '../support/child.ts'
import { crashObject } from './crash-object.ts'

const kills = 24
const writer = new URL('./crash-writer.ts', import.meta.url)

/** Lines of one round, killed at a random moment after its first results. */
async function killedRound(directory: string, round: number): Promise<string[]> {
  const child = startChild(writer, [directory, `${round}`])
  const early = child.ended.then(({ code }) => {
    throw new Error(`the writer ended by itself with ${code}`)
  })
  while (child.lines.length < 20) await Promise.race([sleep(2), early])
  early.catch(() => {})
  await sleep(Math.random() * 60)
  child.kill('SIGKILL')
  expect((await child.ended).signal).toBe('SIGKILL')
  return [...child.lines]
}

/** How many objects of a round are there, each of them whole; and that none is missing whose create returned. */
async function checkObjects(store: Store, lines: readonly string[], prefix: string): Promise<number> {
  const listed = new Set<string>()
  for await (const { name, bytes } of store.list(prefix)) {
    const object = Buffer.concat(crashObject(name))
    expect(bytes).toBe(object.length)
    expect(object.equals((await store.read(name))!), name).toBe(true)
    listed.add(name)
  }
  for (const line of lines.filter((text) => text.startsWith('created'))) {
    const name = line.slice('created '.length)
    const deleted = Number(name.slice(name.lastIndexOf('-') + 1)) % 7 === 6
    if (!deleted) expect(listed, 'a created object is lost').toContain(name)
  }
  return listed.size
}

test(`loses nothing that returned and shows nothing in part, killed ${kills} times`, { timeout: 120_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-crash-'))
  let [objects, revision, wakes] = [0, 0, 0]
  for (let round = 0; round < kills; round++) {
    const lines = await killedRound(directory, round)
    const store = fileStore(join(directory, 'store'))
    expect(readdirSync(join(directory, 'store', '+partial'))).toEqual([])
    objects += await checkObjects(store, lines, `round/${round}/`)
    await store.close()

    const numbers = (word: string) =>
      lines.filter((line) => line.startsWith(word)).map((line) => Number(line.split(' ')[1]))
    const ledger = sqliteLedger(join(directory, 'ledger.db'))
    const head = (await ledger.read('p'))!
    // At most the write that had not returned yet may be there beyond what was printed.
    const printed = Math.max(revision, ...numbers('swapped'))
    expect([printed, printed + 1]).toContain(head.revision)
    expect((await ledger.histories('p', 0, head.revision + 10)).map(({ epoch }) => epoch)).toEqual(
      Array.from({ length: head.revision + 1 }, (_, epoch) => epoch),
    )
    const rung = Math.max(wakes, ...numbers('rang'))
    expect([rung, rung + 1]).toContain(await ledger.wakes('p'))
    revision = head.revision
    wakes = await ledger.wakes('p')
    await ledger.close()
  }
  expect(objects).toBeGreaterThan(kills)
  expect(revision).toBeGreaterThan(kills)
  rmSync(directory, { recursive: true })
})
