/**
 * How fast tables are written: `node --conditions=pawl-source bench/parts/sinks.ts`.
 *
 * Options: --rows 300000 --rounds 5. Starts a PostgreSQL and a MariaDB of its own. Each round writes the same rows
 * bare (one transaction of prepared text: COPY, or multi-row INSERTs of the same size) and as an epoch (staged in
 * memory, then promoted); which comes first alternates. Printed are the medians in rows a second and their ratio:
 * what marker, checksums and reading back cost, since all runs share the machine. `oneRowMs` is an epoch of a single
 * row beside a transaction of that row: what the marker alone costs.
 */
import { randomUUID } from 'node:crypto'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import type { Submittable } from 'pg'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { mysql } from '../../lib/adapters/mysql/sink.ts'
import { loadDriver } from '../../lib/adapters/postgres/driver.ts'
import { postgres } from '../../lib/adapters/postgres/sink.ts'
import { blocksOf } from '../../lib/adapters/shared/row-blocks.ts'
import type { CommitPermit, Committable, Marker } from '../../lib/model/manifest.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import type { CustomSinkSpec } from '../../lib/ports/spec.ts'
import { startMariaDb } from '../../test/support/mariadb-server.ts'
import { startPostgres } from '../../test/support/postgres-server.ts'

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '300000' }, rounds: { type: 'string', default: '5' } },
})
const [rows, rounds] = [Number(values.rows), Number(values.rounds)]
const flushBytes = 8 * 1024 * 1024
const columns = '(id bigint PRIMARY KEY, customer varchar(40), cents bigint, note text)'

interface Contender {
  readonly name: string
  readonly spec: CustomSinkSpec<unknown, unknown>
  /** Empties the table. */
  clear(): Promise<void>
  /** Writes the lines of all blocks in one transaction. */
  bare(blocks: readonly Buffer[]): Promise<void>
}

const rowOf = (i: number) => ({
  id: i,
  customer: `customer-${i % 10_000}`,
  cents: (i * 7919) % 1_000_000,
  note: 'a note of some sixty characters, as a real order might carry.',
})

/** One sink that is open, and the marker that its lane has. */
interface Opened {
  readonly sink: Sink
  readonly store: ReturnType<typeof memoryStore>
  readonly incarnation: string
  prev: Marker
}

type Times = Readonly<Record<'stage' | 'promote' | 'bare', number[]>>

async function measure(contender: Contender): Promise<void> {
  const store = memoryStore()
  const incarnation = randomUUID()
  const context = { pipeline: randomUUID(), incarnation, stage: 'bench', directory: null, store }
  const sink = await contender.spec.open('rows', context)
  const prev = await sink.base(0, { incarnation, epoch: 0, hash: 'genesis' })
  const opened: Opened = { sink, store, incarnation, prev }
  const many = await timesOf(contender, opened, rows, rounds)
  const one = await timesOf(contender, opened, 1, rounds * 10)
  await sink.close()
  const rate = (ms: number[]) => Math.round((rows / median(ms)) * 1000)
  const perSecond = { staged: rate(many.stage), bare: rate(many.bare), promoted: rate(many.promote) }
  const ratio = Number((median(many.bare) / median(many.promote)).toFixed(2))
  const oneRowMs = { bare: Number(median(one.bare).toFixed(2)), promoted: Number(median(one.promote).toFixed(2)) }
  process.stdout.write(`${JSON.stringify({ sink: contender.name, rows, rounds, perSecond, ratio, oneRowMs })}\n`)
}

async function timesOf({ clear, bare }: Contender, opened: Opened, count: number, repeats: number): Promise<Times> {
  const times: Times = { stage: [], promote: [], bare: [] }
  for (let repeat = 0; repeat < repeats; repeat++) {
    const startedAt = performance.now()
    const committable = await staged(opened, count)
    times.stage.push(performance.now() - startedAt)
    const lines: Buffer[] = []
    for (const part of committable.parts)
      for await (const block of blocksOf(opened.store, part)) lines.push(block.lines)
    const ways = { bare: () => bare(lines), promote: () => promote(opened, committable) }
    for (const way of repeat % 2 === 0 ? (['bare', 'promote'] as const) : (['promote', 'bare'] as const)) {
      await clear()
      times[way].push(await timed(ways[way]))
    }
    await opened.store.delete(opened.store.names())
  }
  return times
}

async function staged({ sink, store, incarnation, prev }: Opened, count: number): Promise<Committable> {
  const epoch = prev.epoch + 1
  const writer = await sink.stage({ store, prefix: `${randomUUID()}/`, incarnation, epoch, lanes: 1 })
  for (let i = 0; i < count; i++) {
    writer.add(null, rowOf(i), 0, 0)
    if (writer.bufferedBytes > flushBytes) await writer.flush()
  }
  const parts = await writer.seal()
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0)
  return { sink: 'rows', lane: 0, target: sink.target, epoch, prev, parts, rows: count, bytes }
}

async function promote(opened: Opened, committable: Committable): Promise<void> {
  const { epoch } = committable
  const { incarnation } = opened
  const permit = { incarnation, epoch, manifest: { name: 'm', bytes: 1, sha256: `hash-${epoch}` } } as CommitPermit
  const { result } = await opened.sink.promote(committable, permit)
  if (result !== 'promoted') throw new Error(result)
  opened.prev = { incarnation, epoch, hash: `hash-${epoch}` }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!
}

async function measurePostgres(): Promise<void> {
  const server = await startPostgres()
  await server.query(`CREATE TABLE bench ${columns}`)
  const { copyFrom } = await loadDriver()
  const client = await server.connect()
  await measure({
    name: 'postgres',
    spec: postgres({ connection: server.url, table: 'bench' }),
    clear: async () => void (await server.query('TRUNCATE bench; CHECKPOINT')),
    async bare(blocks) {
      await client.query('BEGIN')
      const stream = client.query(
        copyFrom('COPY bench (id, customer, cents, note) FROM STDIN') as Writable & Submittable,
      )
      for (const block of blocks)
        if (!stream.write(block)) await new Promise((resolve) => stream.once('drain', resolve))
      stream.end()
      await finished(stream)
      await client.query('COMMIT')
    },
  })
  await client.end()
  await server.remove()
}

async function measureMariaDb(): Promise<void> {
  const server = await startMariaDb()
  await server.query(`CREATE TABLE bench ${columns}`)
  const connection = await server.connect()
  await measure({
    name: 'mysql',
    spec: mysql({ connection: server.url, table: 'bench' }),
    clear: async () => void (await server.query('TRUNCATE bench')),
    async bare(blocks) {
      const statements = blocks.map((block) => {
        const text = block.toString('utf8', 0, block.length - 1)
        return `INSERT INTO bench VALUES (${text.replaceAll('\t', ',').replaceAll('\n', '),(')})`
      })
      await connection.query('START TRANSACTION')
      for (const statement of statements) await connection.query(statement)
      await connection.query('COMMIT')
    },
  })
  await connection.end()
  await server.remove()
}

await measurePostgres()
await measureMariaDb()
