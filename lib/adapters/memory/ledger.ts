/**
 * A ledger in memory, as strict as the real ones.
 *
 * Heads and history are kept as JSON text: what is not JSON does not survive here either, and nobody changes a
 * head through an object that they kept. Beside the port, it can be rewound to a point in time, as a database
 * restored from a backup is. `close` keeps everything: one memory ledger outlives the processes that use it.
 */
import type { Head, HistoryItem } from '../../model/head.ts'
import type { Ledger } from '../../ports/ledger.ts'
import { assertCreatable, assertEpochRange, assertSwappable } from '../shared/head-writes.ts'

/** Everything a memory ledger held at one moment; opaque. */
export interface LedgerSnapshot {
  readonly heads: ReadonlyMap<string, StoredHead>
  readonly histories: ReadonlyMap<string, ReadonlyMap<number, string>>
  readonly wakes: ReadonlyMap<string, number>
}

interface StoredHead {
  readonly revision: number
  readonly write: string
  readonly text: string
}

export interface MemoryLedger extends Ledger {
  /** The whole ledger as it is now; later writes do not change it. */
  snapshot(): LedgerSnapshot
  /** Rewinds to a snapshot; whatever was written since is gone. */
  restore(snapshot: LedgerSnapshot): void
  /** Loses one epoch of the history behind everybody's back. */
  dropHistory(pipeline: string, epoch: number): void
}

/** An empty ledger. */
export function memoryLedger(): MemoryLedger {
  let heads = new Map<string, StoredHead>()
  let histories = new Map<string, Map<number, string>>()
  let wakeCounts = new Map<string, number>()

  const historyOf = (pipeline: string) => {
    const known = histories.get(pipeline)
    if (known !== undefined) return known
    const fresh = new Map<number, string>()
    histories.set(pipeline, fresh)
    return fresh
  }
  const wakes = (pipeline: string) => wakeCounts.get(pipeline) ?? 0
  const write = (head: Head, history: HistoryItem | undefined) => {
    const [headText, historyText] = [JSON.stringify(head), JSON.stringify(history)]
    heads.set(head.pipeline, { revision: head.revision, write: head.write, text: headText })
    if (history !== undefined) historyOf(head.pipeline).set(history.epoch, historyText)
  }
  const parsed = (text: string | undefined): HistoryItem | null => (text === undefined ? null : JSON.parse(text))

  return {
    async read(pipeline) {
      const stored = heads.get(pipeline)
      return stored === undefined ? null : JSON.parse(stored.text)
    },
    async create(head, history) {
      assertCreatable(head, history)
      if (heads.has(head.pipeline)) return 'exists'
      write(head, history)
      return 'created'
    },
    async swap(expected, head, options) {
      assertSwappable(expected, head, options)
      const stored = heads.get(head.pipeline)
      if (stored?.revision !== expected) return 'moved'
      if (options?.seen !== undefined && options.seen !== stored.write) return 'moved'
      if (options?.wakes !== undefined && options.wakes !== wakes(head.pipeline)) return 'moved'
      if (options?.history !== undefined && historyOf(head.pipeline).has(options.history.epoch)) return 'moved'
      write(head, options?.history)
      return 'swapped'
    },
    async history(pipeline, epoch) {
      return parsed(histories.get(pipeline)?.get(epoch))
    },
    async histories(pipeline, from, to) {
      assertEpochRange(from, to)
      const epochs = [...(histories.get(pipeline) ?? [])].filter(([epoch]) => epoch >= from && epoch < to)
      return epochs.sort(([a], [b]) => a - b).map(([, text]) => JSON.parse(text))
    },
    async ring(pipeline) {
      const count = wakes(pipeline) + 1
      wakeCounts.set(pipeline, count)
      return count
    },
    async wakes(pipeline) {
      return wakes(pipeline)
    },
    async pipelines() {
      return [...heads.keys()].sort()
    },
    async close() {},
    snapshot: () => ({
      heads: new Map(heads),
      histories: new Map([...histories].map(([pipeline, items]) => [pipeline, new Map(items)])),
      wakes: new Map(wakeCounts),
    }),
    restore(snapshot) {
      heads = new Map(snapshot.heads)
      histories = new Map([...snapshot.histories].map(([pipeline, items]) => [pipeline, new Map(items)]))
      wakeCounts = new Map(snapshot.wakes)
    },
    dropHistory(pipeline, epoch) {
      histories.get(pipeline)?.delete(epoch)
    },
  }
}
