/**
 * Ports that count what they are asked for, in the words of those who bill for it.
 *
 * The deployed adapters make one request for each call of a port (docs/deployment.md, "What an epoch calls"); a
 * conditional write with a second item is a transaction, whose items count twice. Units of DynamoDB follow the size of
 * what is read and written. Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
 */
import type { Ledger } from '../ports/ledger.ts'
import type { Place } from '../ports/place.ts'
import type { Store } from '../ports/store.ts'

/** What can be asked for and is paid. */
export type Asked =
  | 'invocation'
  | 'transition'
  | 'execution'
  | 'GetItem'
  | 'Query'
  | 'PutItem'
  | 'UpdateItem'
  | 'TransactWriteItems'
  | 'readUnit'
  | 'writeUnit'
  | 'GetObject'
  | 'PutObject'
  | 'ListObjects'
  | 'DeleteObjects'
  | 'createdBytes'

/** What was asked for, by who asked: a step, `trigger`, `tick` or `machine`. */
export type Calls = Readonly<Record<string, Readonly<Partial<Record<Asked, number>>>>>

/** Counts by who asks. */
export interface Counter {
  note(who: string, asked: Asked, count?: number): void
  calls(): Calls
  /** Begins at zero, or at what was counted before. */
  reset(from?: Calls): void
  /** The place as one function sees it, counted under its name. */
  place<P extends Pick<Place, 'ledger' | 'store'>>(who: string, place: P): P
}

/** Bytes of an item beside its text: key, revision, checksum and the names of all of them, with what an item costs. */
const itemBytes = 200
const unitsOf = (value: unknown, unitBytes: number) =>
  Math.max(1, Math.ceil((itemBytes + Buffer.byteLength(JSON.stringify(value ?? null))) / unitBytes))
const readUnits = (value: unknown) => unitsOf(value, 4096)
const writeUnits = (value: unknown) => unitsOf(value, 1024)

/** A counter at zero. */
export function counted(): Counter {
  let counts = new Map<string, Map<Asked, number>>()
  const note: Counter['note'] = (who, asked, count = 1) => {
    const own = counts.get(who) ?? new Map<Asked, number>()
    counts.set(who, own.set(asked, (own.get(asked) ?? 0) + count))
  }
  return {
    note,
    calls: () => Object.fromEntries([...counts].map(([who, own]) => [who, Object.fromEntries(own)])),
    reset(from = {}) {
      counts = new Map(
        Object.entries(from).map(([who, own]) => [who, new Map(Object.entries(own) as [Asked, number][])]),
      )
    },
    place: (who, place) => ({
      ...place,
      ledger: countedLedger(place.ledger, (asked, count) => note(who, asked, count)),
      store: countedStore(place.store, (asked, count) => note(who, asked, count)),
    }),
  }
}

type Note = (asked: Asked, count?: number) => void

function countedLedger(ledger: Ledger, note: Note): Ledger {
  const read = <T>(asked: Asked, value: T): T => {
    note(asked)
    note('readUnit', readUnits(value))
    return value
  }
  return {
    ...ledger,
    read: async (pipeline) => read('GetItem', await ledger.read(pipeline)),
    history: async (pipeline, epoch) => read('GetItem', await ledger.history(pipeline, epoch)),
    histories: async (pipeline, from, to) => read('Query', await ledger.histories(pipeline, from, to)),
    wakes: async (pipeline) => read('GetItem', await ledger.wakes(pipeline)),
    ring(pipeline) {
      note('UpdateItem')
      note('writeUnit')
      return ledger.ring(pipeline)
    },
    swap(expected, head, options = {}) {
      const { history, wakes } = options
      const alone = history === undefined && wakes === undefined
      note(alone ? 'PutItem' : 'TransactWriteItems')
      const others = (history === undefined ? 0 : writeUnits(history)) + (wakes === undefined ? 0 : 1)
      note('writeUnit', alone ? writeUnits(head) : 2 * (writeUnits(head) + others))
      return ledger.swap(expected, head, options)
    },
  }
}

/** Objects beyond this go up in parts; deletions take so many names at once. Both as the store on S3 has them. */
const partBytes = 16 * 1024 * 1024
const namesAtOnce = 1000
const listedAtOnce = 1000

function countedStore(store: Store, note: Note): Store {
  return {
    ...store,
    create(name, chunks) {
      const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
      note('createdBytes', bytes)
      note('PutObject', bytes > partBytes ? Math.ceil(bytes / partBytes) + 2 : 1)
      return store.create(name, chunks)
    },
    read(name, range) {
      note('GetObject')
      return store.read(name, range)
    },
    async *list(prefix) {
      let listed = 0
      for await (const object of store.list(prefix)) {
        if (listed++ % listedAtOnce === 0) note('ListObjects')
        yield object
      }
      if (listed === 0) note('ListObjects')
    },
    delete(names) {
      note('DeleteObjects', Math.ceil(names.length / namesAtOnce))
      return store.delete(names)
    },
  }
}
