/**
 * What an object costs in the store on disk: microseconds a create and a read, alone and many at once.
 *
 * Run with a directory on the disk in question: `node bench/parts/file-store.ts DIRECTORY`. Each measurement has
 * names of its own; the directory is removed at the end.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from '../../lib/adapters/file/store.ts'

const directory = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'pawl-bench-store-'))
const store = fileStore(directory)

async function measure(what: string, times: number, work: (index: number) => Promise<unknown>, atOnce = 1) {
  const startMs = performance.now()
  for (let index = 0; index < times; index += atOnce) {
    if (atOnce === 1) await work(index)
    else await Promise.all(Array.from({ length: atOnce }, (_, offset) => work(index + offset)))
  }
  const microseconds = ((performance.now() - startMs) * 1000) / times
  process.stdout.write(`${what.padEnd(44)} ${microseconds.toFixed(0).padStart(8)} µs\n`)
}

const small = [Buffer.alloc(2_000, 1)]
const large = Array.from({ length: 8 }, () => Buffer.alloc(1024 * 1024, 1))
await measure('create 2 kB, one directory', 400, (index) => store.create(`one/${index}`, small))
await measure('create 2 kB, one directory, 8 at once', 400, (index) => store.create(`eight/${index}`, small), 8)
await measure('create 2 kB, a new directory each', 200, (index) => store.create(`new/${index}/x`, small))
await measure(
  'create 2 kB, 4 in a new directory at once',
  200,
  (index) => store.create(`four/${index >> 2}/${index}`, small),
  4,
)
await measure('create 8 MiB', 20, (index) => store.create(`large/${index}`, large))
await measure('read 2 kB', 400, (index) => store.read(`one/${index}`))
await measure('read 8 MiB', 20, (index) => store.read(`large/${index}`))
await measure('delete', 400, (index) => store.delete([`one/${index}`]))
await store.close()
rmSync(directory, { recursive: true })
