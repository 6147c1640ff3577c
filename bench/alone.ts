/**
 * Pawl by itself, on a machine without Java: the same jobs over logs in a directory.
 *
 * Bids and lines as in `peers/tools`, from a seed. The output, files of JSON lines, is compared with what the input
 * makes. Nothing here is compared with the peers.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from '../lib/adapters/file/store.ts'
import { createSegmentLog } from '../lib/adapters/segments/log.ts'
import { systemRandom } from '../lib/adapters/system/random.ts'
import { partitionOf } from '../lib/model/murmur2.ts'
import { prng } from '../lib/model/prng.ts'
import type { LogRecord } from '../lib/model/records.ts'
import { startJob } from './processes.ts'
import { type JobName, jobCommand, jobTopics } from './systems.ts'

const partitions = 4
const startMs = 1_790_000_000_000
const windowMs = 10_000

/** Runs each job over so many records, prints its figures, and fails when its output is not what it must be. */
export async function alone(records: number, jobs: readonly JobName[]): Promise<void> {
  for (const job of jobs) {
    const directory = mkdtempSync(join(tmpdir(), 'pawl-bench-alone-'))
    try {
      const wanted = await fill(join(directory, 'pawl'), job, records)
      const running = startJob(
        jobCommand({
          ...{ system: 'pawl', job, input: jobTopics[job], output: 'out', id: job, bootstrap: null },
          ...{ intervalMs: 1000, parallelism: 1, expected: [0, 0], directory, untilCaughtUp: true },
        }),
      )
      const exit = await running.event('exit', 240_000)
      await running.ended
      const found = shown(job, join(directory, 'pawl/files', job))
      const verified = found.size === wanted.size && [...wanted].every(([key, value]) => found.get(key) === value)
      if (!verified) process.exitCode = 1
      const perCpuS = Math.round((records * 1e6) / Number(exit?.cpu))
      const peakMb = Math.round(Number(exit?.rss) / 1024)
      process.stdout.write(`pawl ${job} ${records}: ${perCpuS}/CPU-s, ${peakMb} MB, verified: ${verified}\n`)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }
}

/** Fills the log; what the job makes of it, by key. */
async function fill(directory: string, job: JobName, records: number): Promise<Map<string, string>> {
  const store = fileStore(join(directory, 'store'))
  const log = await createSegmentLog(store, { topic: jobTopics[job], partitions, random: systemRandom() })
  const waiting: LogRecord[][] = Array.from({ length: partitions }, () => [])
  const wanted = new Map<string, string>()
  const add = async (partition: number, record: LogRecord) => {
    if (waiting[partition].push(record) === 20_000) await log.append(partition, waiting[partition].splice(0))
  }
  const random = prng(42)
  const totals = new Map<string, { count: number; sum: number }>()
  const counts = new Map<string, number>()
  for (let i = 0; i < records; i++) {
    const ts = startMs + Math.floor(i / 5)
    if (job === 'wordcount') {
      const words = Array.from({ length: 8 }, () => `word${Math.floor(random.next() ** 4 * 10_000)}`)
      for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
      await add(i % partitions, { key: null, value: words.join(' '), timestampMs: ts })
      continue
    }
    const auction = Math.floor(random.next() ** 4 * 1000)
    const price = 100 + random.int(999_900)
    const bid = { auction, bidder: i, price, channel: `channel-${random.int(1000)}-abcdefghijklmnopqrstuvwxyz`, ts }
    const window = `${auction}@${ts - (ts % windowMs)}`
    const { count, sum } = totals.get(window) ?? { count: 0, sum: 0 }
    totals.set(window, { count: count + 1, sum: sum + price })
    if (job === 'passthrough') wanted.set(String(i), String((price * 908) / 1000))
    const key = String(auction)
    await add(partitionOf(Buffer.from(key), partitions), { key, value: JSON.stringify(bid), timestampMs: ts })
  }
  const endMs = startMs + Math.floor(records / 5) + 3_600_000
  for (let partition = 0; partition < partitions && job === 'count'; partition++)
    await add(partition, {
      key: 'end',
      value: JSON.stringify({ auction: -1, price: 0, ts: endMs }),
      timestampMs: endMs,
    })
  for (const [partition, rest] of waiting.entries()) if (rest.length > 0) await log.append(partition, rest)
  await log.close()
  await store.close()
  if (job === 'count') for (const [window, total] of totals) wanted.set(window, JSON.stringify(total))
  for (const [word, count] of counts) wanted.set(word, String(count))
  return wanted
}

/** What the files show, by key; the last count of a word, and `repeated` when a row stands there twice. */
function shown(job: JobName, directory: string): Map<string, string> {
  const found = new Map<string, string>()
  const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.jsonl'))
  for (const path of paths.sort()) {
    for (const line of readFileSync(join(directory, path), 'utf8').split('\n').filter(Boolean)) {
      const { key, value } = JSON.parse(line)
      const name = job === 'passthrough' ? String(value.bidder) : key
      const text = job === 'passthrough' ? String(value.price) : JSON.stringify(value)
      found.set(name, job !== 'wordcount' && found.has(name) ? 'repeated' : text)
    }
  }
  return found
}
