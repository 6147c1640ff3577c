import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import { memoryLedger } from '../../lib/adapters/memory/ledger.ts'
import { sqliteLedger } from '../../lib/adapters/sqlite/ledger.ts'
import type { Ledger } from '../../lib/ports/ledger.ts'
import { contractCases, type Implementation } from '../../lib/testing/contracts/contract.ts'
import { ledgerContract } from '../../lib/testing/contracts/ledger.ts'

const memory: Implementation<Ledger> = {
  name: 'memory',
  async fresh() {
    const ledger = memoryLedger()
    return { open: async () => ledger }
  },
}

const sqlite: Implementation<Ledger> = {
  name: 'sqlite',
  async fresh() {
    const directory = await mkdtemp(join(tmpdir(), 'pawl-ledger-'))
    const opened: Ledger[] = []
    return {
      async open() {
        const ledger = sqliteLedger(join(directory, 'data', 'ledger.db'))
        opened.push(ledger)
        return ledger
      },
      async dispose() {
        for (const ledger of opened) await ledger.close()
        await rm(directory, { recursive: true })
      },
    }
  },
}

describe.each([memory, sqlite])('ledger: $name', (implementation) => {
  for (const { name, run } of contractCases(ledgerContract, implementation)) test(name, run)
})
