/**
 * What must be there after the writer of `crash-writer.ts` died, given the lines that it had printed.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { fileStore } from '../../lib/adapters/file/store.ts'
import { sqliteLedger } from '../../lib/adapters/sqlite/ledger.ts'
import type { Ledger } from '../../lib/ports/ledger.ts'
import type { Store } from '../../lib/ports/store.ts'
import type { Child } from '../support/child.ts'
import { crashObject } from './crash-object.ts'

/** What earlier rounds left in the ledger. */
export interface Survived {
  readonly revision: number
  readonly wakes: number
  readonly objects: number
}

/** Waits until the writer has printed its first results. */
export async function writing(child: Child, linesMin: number): Promise<void> {
  let ended: number | null | undefined
  child.ended.then(({ code }) => {
    ended = code
  })
  await expect
    .poll(
      () => {
        if (ended !== undefined) throw new Error(`the writer ended by itself with ${ended}`)
        return child.lines.length
      },
      { interval: 2, timeout: 10_000 },
    )
    .toBeGreaterThanOrEqual(linesMin)
}

/** Holds that all that had returned is there, and that what is there is whole; answers with what is there. */
export async function checkSurvivors(
  directory: string,
  round: number,
  lines: readonly string[],
  before: Survived,
): Promise<Survived> {
  const store = fileStore(join(directory, 'store'))
  const objects = await checkObjects(store, lines, `round/${round}/`).finally(() => store.close())
  const ledger = sqliteLedger(join(directory, 'ledger.db'))
  const numbers = await checkLedger(ledger, lines, before).finally(() => ledger.close())
  return { objects: before.objects + objects, ...numbers }
}

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

async function checkLedger(ledger: Ledger, lines: readonly string[], before: Survived) {
  const printed = (word: string, least: number) =>
    Math.max(least, ...lines.filter((line) => line.startsWith(word)).map((line) => Number(line.split(' ')[1])))
  const { revision } = (await ledger.read('p'))!
  const wakes = await ledger.wakes('p')
  // Beyond what was printed, at most the one write may be there that had not returned yet.
  const [revisionMin, wakesMin] = [printed('swapped', before.revision), printed('rang', before.wakes)]
  expect([revisionMin, revisionMin + 1]).toContain(revision)
  expect([wakesMin, wakesMin + 1]).toContain(wakes)
  const epochs = (await ledger.histories('p', 0, revision + 10)).map(({ epoch }) => epoch)
  expect(epochs).toEqual(Array.from({ length: revision + 1 }, (_, epoch) => epoch))
  return { revision, wakes }
}

/** Names of temporary files that are left. */
export const leftovers = (directory: string) => readdirSync(join(directory, 'store', '+partial'))
