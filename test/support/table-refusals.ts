/**
 * What becomes of rows that a real table refuses, where they go to the dead letters: cases that both databases run.
 *
 * Checks on the sink alone, then whole pipelines whose server is killed while they run.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RejectedRecord } from '../../lib/model/manifest.ts'
import { prng } from '../../lib/model/prng.ts'
import { json, nullable, text } from '../../lib/model/serde.ts'
import { deadLetter, pipeline } from '../../lib/stream/pipeline.ts'
import { topic } from '../../lib/stream/topic.ts'
import { memory } from '../../lib/testing/index.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { freshName, markerOf, settled, type TableDatabase, tableRig } from './table-rig.ts'
import { install } from './table-runs.ts'

type Case = (database: TableDatabase) => Promise<void>

const columns = '(k int PRIMARY KEY, v int, CONSTRAINT positive CHECK (v > 0))'
const bound = { rows: 1000, bytes: 1024 * 1024 }
const cellsOf = ({ value }: { readonly value: string | null }) =>
  JSON.parse(Buffer.from(value ?? '', 'base64').toString()) as Record<string, string>

async function rigOn(database: TableDatabase, mode: 'insert' | 'upsert', url = database.url) {
  const table = freshName('t')
  await database.query(`CREATE TABLE ${table} ${columns}`)
  const options = { table, mode, key: ['k'], onReject: 'dead-letter', lockTimeoutMs: 1000 } as const
  const rig = await tableRig(database.spec({ ...options, connection: () => url }))
  await rig.base()
  const rows = async () => (await database.query(`SELECT k FROM ${table} ORDER BY k`)).map(({ k }) => Number(k))
  return { table, rig, rows }
}

const bad = new Set([3, 77, 78, 200, 299])
const some = Array.from({ length: 300 }, (_, k) => [{ k, v: bad.has(k) ? -1 : 1 }] as const)
const good = some.map((_, k) => k).filter((k) => !bad.has(k))

const sinks: Record<string, Case> = {}
for (const mode of ['insert', 'upsert'] as const) {
  sinks[`${mode}: writes the welcome rows and records the others with the marker, until they are forgotten`] = async (
    database,
  ) => {
    const { rig, rows } = await rigOn(database, mode)
    const committable = await rig.stage(some, 120)
    assert.deepEqual(await rig.promote(committable), { result: 'promoted', refused: bad.size })
    assert.deepEqual(await rows(), good)
    const refused = await rig.sink.refused!(0, bound)
    assert.deepEqual(
      refused.map(({ row }) => row),
      [...bad],
    )
    for (const row of refused) {
      assert.deepEqual([row.epoch, row.incarnation, cellsOf(row)], [1, rig.incarnation, { k: `${row.row}`, v: '-1' }])
      assert.match(row.reason, /positive/)
      assert.equal(row.column, 'v')
      assert.match(row.code, /^23514$|^4025$|^23000$/)
      assert.equal(Buffer.from(row.key!, 'base64').toString(), `k=${row.row}`)
    }
    assert.deepEqual(await rig.promote(committable), { result: 'refused', found: markerOf(rig.incarnation, 1) })
    assert.equal((await rig.sink.refused!(0, { rows: 2, bytes: 9999 })).length, 2)
    assert.equal((await rig.sink.refused!(0, { rows: 9, bytes: 1 })).length, 1)
    await rig.sink.forget!(
      0,
      refused.slice(1).map(({ id }) => id),
    )
    await rig.sink.forget!(0, ['nobody', refused[4]!.id])
    assert.deepEqual(await rig.sink.refused!(0, bound), [refused[0]])
  }
}
Object.assign(sinks, {
  'a row whose key is there already is refused, the first one stays': async (database) => {
    const { rig, rows } = await rigOn(database, 'insert')
    await rig.run([[{ k: 1, v: 1 }]])
    const twice = await rig.stage([[{ k: 2, v: 1 }], [{ k: 1, v: 9 }], [{ k: 2, v: 8 }], [{ k: 3, v: 1 }]])
    assert.deepEqual(await rig.promote(twice), { result: 'promoted', refused: 2 })
    assert.deepEqual(await rows(), [1, 2, 3])
    const refused = await rig.sink.refused!(0, bound)
    assert.deepEqual(
      refused.map((row) => [row.row, cellsOf(row).v]),
      [
        [1, '9'],
        [2, '8'],
      ],
    )
  },
  'a value that does not fit is refused with its column': async (database) => {
    const { rig, rows } = await rigOn(database, 'insert')
    const committable = await rig.stage([[{ k: 1, v: 1 }], [{ k: 2, v: 5_000_000_000 }], [{ k: 3, v: 1 }]])
    assert.deepEqual(await rig.promote(committable), { result: 'promoted', refused: 1 })
    assert.deepEqual(await rows(), [1, 3])
    assert.equal((await rig.sink.refused!(0, bound))[0]!.column, 'v')
  },
  'more refusals than a few are the fault of the table: nothing is written': async (database) => {
    const { rig, rows } = await rigOn(database, 'insert')
    const committable = await rig.stage(Array.from({ length: 1002 }, (_, k) => [{ k, v: k === 0 ? 1 : -1 }]))
    await assert.rejects(rig.promote(committable), { code: 'ROWS_REFUSED' })
    assert.deepEqual(await rows(), [])
    assert.deepEqual(await rig.sink.refused!(0, bound), [])
  },
  'a table that does not fit parks as ever': async (database) => {
    const { table, rig } = await rigOn(database, 'insert')
    await database.query(`ALTER TABLE ${table} DROP COLUMN v`)
    await assert.rejects(rig.promote(await rig.stage([[{ k: 1, v: 1 }]])), { code: 'SINK_SCHEMA_INVALID' })
  },
  'case 1: records each once when the answer to COMMIT is lost, and when two promote at once': async (database) => {
    const proxy = await cuttingProxy(database.server.port)
    const url = new URL(database.url)
    url.port = String(proxy.port)
    try {
      const { rig, rows } = await rigOn(database, 'insert', url.href)
      const first = await rig.stage(some)
      proxy.cut(/COMMIT(?!TED)/, 'after')
      await assert.rejects(rig.promote(first), { code: 'UNKNOWN_RESULT' })
      assert.deepEqual(await settled(rig, first), { result: 'refused', found: markerOf(rig.incarnation, 1) })
      const second = await rig.stage([[{ k: 900, v: -1 }], [{ k: 901, v: 1 }]])
      const answers = await Promise.all([settled(rig, second), settled(rig, second)])
      assert.deepEqual(answers.map(({ result }) => result).sort(), ['promoted', 'refused'])
      assert.deepEqual(await rows(), [...good, 901])
      assert.equal((await rig.sink.refused!(0, bound)).length, bad.size + 1)
    } finally {
      await proxy.close()
    }
  },
} satisfies Record<string, Case>)

const pipelineOf = (table: string) => table.replace('_', '-')

/** Numbers into a table that wants them above zero; the others become dead letters, in memory. */
function numbersPipeline(database: TableDatabase, table: string) {
  const letters = memory<RejectedRecord, string | null>({ value: json(), key: nullable(text()) })
  const numbers = pipeline(pipelineOf(table), {
    checkpoint: { intervalMs: 0 },
    promotionRetryMs: [50, 200],
    onError: deadLetter('letters', letters),
  })
    .from(topic('numbers', { value: text() }))
    .to(
      'table',
      database.spec({
        connection: () => database.url,
        ...{ table, key: ['k'], onReject: 'dead-letter', lockTimeoutMs: 1000 },
        row: (value) => ({ k: Math.abs(Number(value)), v: Number(value) }),
      }),
    )
  return { numbers, letters }
}

const pipelines: Record<string, Case> = {
  'each refused row is a dead letter once, and each other row is there once, while the server is killed': async (
    database,
  ) => {
    const table = freshName('n')
    await database.query(`CREATE TABLE ${table} ${columns}`)
    const { numbers, letters } = numbersPipeline(database, table)
    const runs = install(numbers)
    const random = prng(5)
    try {
      for (let batch = 0; batch < 3; batch++) {
        await runs.append(...Array.from({ length: 50 }, (_, i) => `${(i % 7 === 3 ? -1 : 1) * (1 + batch * 50 + i)}`))
        const running = runs.run()
        await sleep(random.int(120))
        await database.server.kill()
        await database.server.restart()
        assert.equal((await running).reason, 'caught-up')
      }
      const all = Array.from({ length: 150 }, (_, n) => n + 1)
      const isBad = (n: number) => ((n - 1) % 50) % 7 === 3
      const shown = (await database.query(`SELECT k FROM ${table} ORDER BY k`)).map(({ k }) => Number(k))
      assert.deepEqual(
        shown,
        all.filter((n) => !isBad(n)),
      )
      const buried = letters.entries().map(({ value }) => Number(cellsOf(value!).k))
      assert.deepEqual(
        buried.sort((a, b) => a - b),
        all.filter(isBad),
      )
      const left = await database.query(
        `SELECT count(*) AS n FROM pawl_refused WHERE pipeline = '${pipelineOf(table)}'`,
      )
      assert.equal(Number(left[0]!.n), 0)
    } finally {
      runs.remove()
    }
  },
}

/** Cases by name. */
export const refusalCases: Readonly<Record<string, Case>> = { ...sinks, ...pipelines }
