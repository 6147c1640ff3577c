/**
 * Adds to a head's generation by read and swap, and rings, against other processes that do the same.
 */
import { sqliteLedger } from '../../../lib/adapters/sqlite/ledger.ts'
import { sampleHead, sampleItem } from '../../../lib/testing/contracts/heads.ts'

const [file, name, times] = process.argv.slice(2) as [string, string, string]
const ledger = sqliteLedger(file)
const first = { ...sampleHead('p', 0), generation: 0 }
process.stdout.write(`${await ledger.create(first, sampleItem(0))}\n`)
for (let swapped = 0; swapped < Number(times); ) {
  const head = (await ledger.read('p'))!
  const revision = head.revision + 1
  const next = { ...head, revision, generation: head.generation + 1 }
  const result = await ledger.swap(head.revision, next, { history: sampleItem(revision, name) })
  if (result === 'moved') continue
  swapped++
  await ledger.ring('p')
}
await ledger.close()
