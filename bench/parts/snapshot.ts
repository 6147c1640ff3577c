/**
 * What a snapshot of one million keys costs, with one key in a hundred touched and with all of them.
 *
 * Prints times, bytes and heap; asserts nothing, since a machine's speed is nobody's promise. Run with
 * `node --expose-gc bench/parts/snapshot.ts [keys]`.
 */
import type { Snapshot } from '../../lib/model/manifest.ts'
import { type AggregateState, loadAggregateState } from '../../lib/state/aggregate-state.ts'
import type { EncodedSnapshot } from '../../lib/state/operator-state.ts'

const keys = Number(process.argv[2] ?? 1_000_000)
const scope = { operator: 'bench', stateVersion: 1, keyGroups: [0, 128], totalKeyGroups: 128 } as const

function heapMegabytes(): number {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1e6
}

function timed<T>(name: string, work: () => T, per = keys): T {
  const startMs = performance.now()
  const result = work()
  const tookMs = performance.now() - startMs
  const each = `${((tookMs * 1e6) / per).toFixed(0)} ns each`
  print(`${name.padEnd(28)} ${tookMs.toFixed(1).padStart(9)} ms ${each.padStart(15)}`)
  return result
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function listedAfter(parent: Snapshot | null, { file, entries, keep, chunks }: EncodedSnapshot): Snapshot {
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  print(`  ${file}: ${entries} entries, ${bytes} bytes, beside ${keep} files`)
  const files = [...(parent?.files.slice(0, keep) ?? []), { name: 'bench', sha256: '', bytes, file, entries }]
  return { ...scope, stateKind: 'aggregate', files }
}

function snapshot(name: string, state: AggregateState<unknown>, parent: Snapshot | null, touched: number): Snapshot {
  const encoded = timed(`encode, ${name}`, () => state.encode(parent), touched)
  if (encoded === null) throw new Error('nothing was touched')
  timed(`settle, ${name}`, () => state.settle(), touched)
  return listedAfter(parent, encoded)
}

function measure<A>(title: string, first: A, next: (acc: A) => A): void {
  print(`${title}, ${keys} keys`)
  const before = heapMegabytes()
  const state = loadAggregateState<A>(scope, null, [])
  const touch = (step: number): void => {
    for (let i = 0; i < keys; i += step) {
      const key = `key-${i}`
      state.set(key, next(state.get(key) ?? first))
    }
  }
  timed('set, all new', () => touch(1))
  const base = state.encode(null)
  const parent = snapshot('all touched', state, null, keys)
  print(`  heap of the state: ${(heapMegabytes() - before).toFixed(0)} MB`)
  timed('get and set, 1 %', () => touch(100), keys / 100)
  const after = snapshot('1 % touched', state, parent, keys / 100)
  timed('get and set, all', () => touch(1))
  snapshot('all touched again', state, after, keys)
  const file = Buffer.concat(base?.chunks ?? [])
  timed('load', () => loadAggregateState<A>(scope, parent, [file]))
  print('')
}

measure<number>('numbers', 0, (acc) => acc + 1.5)
measure<{ count: number; sum: number }>('objects', { count: 0, sum: 0 }, (acc) => ({
  count: acc.count + 1,
  sum: acc.sum + 0.5,
}))
