/**
 * Writes objects and swaps heads without an end, and prints each result once it returned: whoever kills this
 * process knows what must be there.
 */
import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileStore } from '../../lib/adapters/file/store.ts'
import { sqliteLedger } from '../../lib/adapters/sqlite/ledger.ts'
import { sampleHead, sampleItem } from '../../lib/testing/contracts/heads.ts'
import { crashObject } from './crash-object.ts'

const [directory, round] = process.argv.slice(2) as [string, string]
const store = fileStore(join(directory, 'store'))
const ledger = sqliteLedger(join(directory, 'ledger.db'))
const print = (line: string) => writeSync(1, `${line}\n`)

const createObjects = async (lane: number) => {
  for (let index = 0; ; index++) {
    const name = `round/${round}/${index % 10}/${lane}-${index}`
    const result = await store.create(name, crashObject(name))
    print(`${result} ${name}`)
    if (index % 7 === 6) await store.delete([name])
  }
}

const swapHeads = async () => {
  await ledger.create(sampleHead('p', 0), sampleItem(0))
  for (;;) {
    const revision = (await ledger.read('p'))!.revision + 1
    const result = await ledger.swap(revision - 1, sampleHead('p', revision), { history: sampleItem(revision) })
    print(`${result} ${revision}`)
    print(`rang ${await ledger.ring('p')}`)
    // SQLite works on this thread and leaves no turn to the other writers by itself.
    await new Promise((next) => setImmediate(next))
  }
}

await Promise.all([createObjects(0), createObjects(1), createObjects(2), swapHeads()])
