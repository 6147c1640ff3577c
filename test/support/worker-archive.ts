/**
 * Reads every manifest of a pipeline while it runs, before it is collected.
 *
 * One more process on the same ledger: readers must never disturb the workers.
 */
import { join } from 'node:path'
import { fileStore } from '../../lib/adapters/file/store.ts'
import { sqliteLedger } from '../../lib/adapters/sqlite/ledger.ts'
import { unseal } from '../../lib/epoch/seal.ts'
import type { Head } from '../../lib/model/head.ts'
import type { Manifest } from '../../lib/model/manifest.ts'

export interface Archive {
  /** Manifests of all committed epochs, from the genesis on. */
  readonly manifests: readonly Manifest[]
  /** Reads what was committed meanwhile; answers with the head. */
  read(): Promise<Head | null>
  /** Reads now and then until it is closed. */
  close(): Promise<void>
}

/** Opens the archive of a directory that workers may not have made yet. */
export function openArchive(directory: string, pipeline: string): Archive {
  const ledger = sqliteLedger(join(directory, 'ledger.db'))
  const store = fileStore(join(directory, 'store'))
  const manifests: Manifest[] = []
  let last: Promise<unknown> = Promise.resolve()
  const read = async (): Promise<Head | null> => {
    const head = await ledger.read(pipeline)
    if (head === null) return null
    for (const item of await ledger.histories(pipeline, manifests.length, head.committed.epoch + 1))
      manifests.push(await unseal<Manifest>(store, item.manifest))
    return head
  }
  const next = () => {
    const reading = last.then(read)
    last = reading.catch(() => null)
    return reading
  }
  const timer = setInterval(() => void next().catch(() => null), 500)
  return {
    manifests,
    read: next,
    async close() {
      clearInterval(timer)
      await last
      await store.close()
      await ledger.close()
    },
  }
}
