import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import { fileStore } from '../../lib/adapters/file/store.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import type { Store } from '../../lib/ports/store.ts'
import { contractCases, type Implementation } from '../../lib/testing/contracts/contract.ts'
import { storeContract } from '../../lib/testing/contracts/store.ts'

const memory: Implementation<Store> = {
  name: 'memory',
  async fresh() {
    const store = memoryStore()
    return { open: async () => store }
  },
}

const file: Implementation<Store> = {
  name: 'file',
  async fresh() {
    const directory = await mkdtemp(join(tmpdir(), 'pawl-store-'))
    const opened: Store[] = []
    return {
      async open() {
        const store = fileStore(join(directory, 'store'))
        opened.push(store)
        return store
      },
      async dispose() {
        for (const store of opened) await store.close()
        await rm(directory, { recursive: true })
      },
    }
  },
  differences: {
    'holds an object whose name continues the name of another': 'a path is a file or a directory',
  },
}

describe.each([memory, file])('store: $name', (implementation) => {
  for (const { name, run } of contractCases(storeContract, implementation)) test(name, run)
})
