/**
 * The files of a table whose calls can be disturbed: a crash before or after one of them, or an answer that is lost.
 */
import type { TableFiles } from '../../lib/adapters/shared/table-files.ts'
import { PawlError } from '../../lib/model/errors.ts'

/** What happens to a call. After a crash every further call fails, as of a process that is gone. */
export type Mishap = 'crash before' | 'crash after' | 'answer lost' | 'never sent'

/** Files, and what is to happen to their calls. */
export interface FailingTable {
  readonly files: TableFiles
  /** Names of the calls so far, as `create pawl-…`. */
  readonly calls: string[]
  /** The call with this index meets the mishap; null: none does. */
  arm(index: number, mishap: Mishap): void
  /** A process that starts: nothing is armed, calls are counted from 0. */
  restart(): void
  /** Called before each call. */
  before: ((call: string) => Promise<void> | void) | null
}

/** Wraps files. */
export function failingTable(inner: TableFiles): FailingTable {
  let armed: { readonly index: number; readonly mishap: Mishap } | null = null
  let crashed = false
  const gone = () => new Error('the process is gone')
  const call = async <T>(name: string, act: () => Promise<T>): Promise<T> => {
    if (crashed) throw gone()
    const index = table.calls.push(name) - 1
    await table.before?.(name)
    const mishap = armed !== null && armed.index === index ? armed.mishap : null
    const writes = !name.startsWith('read') && !name.startsWith('list')
    crashed = mishap === 'crash before' || mishap === 'crash after'
    if (mishap === 'crash before') throw gone()
    if (mishap === 'never sent') throw new PawlError(writes ? 'UNKNOWN_RESULT' : 'STORE_UNAVAILABLE', name)
    const result = await act()
    if (mishap === 'crash after') throw gone()
    if (mishap === 'answer lost') throw new PawlError(writes ? 'UNKNOWN_RESULT' : 'STORE_UNAVAILABLE', name)
    return result
  }
  const table: FailingTable = {
    files: {
      location: inner.location,
      create: (name, bytes) => call(`create ${name}`, () => inner.create(name, bytes)),
      replace: (name, bytes) => call(`replace ${name}`, () => inner.replace(name, bytes)),
      read: (name) => call(`read ${name}`, () => inner.read(name)),
      list: (folder, after) => call(`list ${folder}`, () => inner.list(folder, after)),
      close: () => inner.close(),
    },
    calls: [],
    before: null,
    arm(index, mishap) {
      armed = { index, mishap }
    },
    restart() {
      armed = null
      crashed = false
      table.calls.length = 0
    },
  }
  return table
}
