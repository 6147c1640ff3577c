/**
 * What the decision costs at the embedded place: one conditional write of the head, beside its limit, two fsyncs.
 *
 *     node --conditions=pawl-source bench/parts/embedded-commit.ts [directory] [commits]
 *
 * A write of SQLite's log is one fsync and its history item rides along; two are what a rename would take.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteLedger } from '../../lib/adapters/sqlite/ledger.ts'
import type { Head } from '../../lib/model/head.ts'

const directory = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'pawl-bench-commit-'))
const commits = Number(process.argv[3] ?? 500)

const hash = 'f'.repeat(64)
const manifest = { name: `p/bench/i/${hash}/manifest`, bytes: 2000, sha256: hash }
const atMs = 1_790_000_000_000
const committed = { epoch: 0, attempt: hash, manifest, openedAtMs: atMs, atMs }
const head = { pipeline: 'bench', incarnation: hash, revision: 0, write: hash, committed, lanes: [], savepoints: [] }

function report(what: string, times: number[]): void {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)].toFixed(2).padStart(8)
  process.stdout.write(`${what.padEnd(34)} p50 ${at(0.5)} ms   p99 ${at(0.99)} ms\n`)
}

const ledger = sqliteLedger(join(directory, 'ledger.db'))
await ledger.create(head as unknown as Head, { epoch: 0, attempt: hash, generation: 0, manifest, atMs })
const writes: number[] = []
for (let revision = 1; revision <= commits; revision++) {
  const next = { ...head, revision, committed: { ...committed, epoch: revision } } as unknown as Head
  const history = { epoch: revision, attempt: hash, generation: 1, manifest, atMs }
  const startMs = performance.now()
  if ((await ledger.swap(revision - 1, next, { history })) !== 'swapped') throw new Error('the head moved')
  writes.push(performance.now() - startMs)
}
await ledger.close()
report('commit: head and history item', writes)

const file = openSync(join(directory, 'plain'), 'w')
const block = Buffer.alloc(2000, 1)
const pairs: number[] = []
for (let at = 0; at < commits; at++) {
  const startMs = performance.now()
  for (const half of [0, 1]) {
    writeSync(file, block, 0, block.length, (2 * at + half) * block.length)
    fdatasyncSync(file)
  }
  pairs.push(performance.now() - startMs)
}
closeSync(file)
report('limit: two writes, each synced', pairs)
rmSync(directory, { recursive: true })
