/**
 * What every table sink must do beyond the sink contract, against a real database: the cases that both databases'
 * tests run.
 *
 * The SQL is what PostgreSQL and MariaDB have in common.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { TableOptions } from '../../lib/adapters/shared/table-options.ts'
import { isPawlError, type PawlError } from '../../lib/model/errors.ts'
import { prng } from '../../lib/model/prng.ts'
import { type CuttingProxy, cuttingProxy } from './cutting-proxy.ts'
import { type AnyRow, freshName, markerOf, settled, type TableDatabase, type TableRig, tableRig } from './table-rig.ts'

type Case = (database: TableDatabase) => Promise<void>
type Options = Partial<TableOptions<unknown, unknown>> & { readonly url?: string }

const pairs = "(k bigint PRIMARY KEY, a int, b varchar(20) DEFAULT 'unset')"

/** A table of its own and a rig on it. */
async function rigOn(database: TableDatabase, columns: string, { url, ...options }: Options = {}) {
  const table = freshName('t')
  await database.query(`CREATE TABLE ${table} ${columns}`)
  const connection = () => url ?? database.url
  const rig = await tableRig(database.spec({ table, lockTimeoutMs: 1000, ...options, connection }))
  await rig.base()
  const rows = (order = 'k') => database.query(`SELECT * FROM ${table} ORDER BY ${order}`)
  return { table, rig, rows }
}

const upsert = { mode: 'upsert', key: ['k'] } as const

async function codeOf(work: Promise<unknown>): Promise<PawlError> {
  try {
    await work
  } catch (error) {
    if (isPawlError(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

const writing: Record<string, Case> = {
  'keeps any text as it is': async (database) => {
    const { rig, rows } = await rigOn(database, '(k int, v text)')
    const random = prng(1)
    const alphabet = [
      'a',
      '\\',
      '\t',
      '\n',
      '\r',
      "'",
      '"',
      '`',
      '\\N',
      '\\.',
      '%',
      ',',
      '(',
      ')',
      'ž',
      '語',
      '🐾',
      '\x1a',
      '\b',
      '?',
      '',
    ]
    const texts = Array.from({ length: 500 }, () =>
      Array.from({ length: random.int(8) }, () => random.pick(alphabet)).join(''),
    )
    await rig.run(texts.map((v, k) => [{ k, v }]))
    assert.deepEqual(
      (await rows()).map(({ v }) => v),
      texts,
    )
  },
  'tells null from missing: a missing column has its default, or stays': async (database) => {
    const { rig, rows } = await rigOn(database, pairs, upsert)
    await rig.run([[{ k: 1, a: 1 }], [{ k: 2, a: 2, b: null }], [{ k: 3, b: 'x', a: undefined }]])
    await rig.run([[{ k: 3, a: 9 }], [{ k: 1, b: null }]])
    const plain = (await rows()).map(({ k, a, b }) => [Number(k), a, b])
    assert.deepEqual(plain, [
      [1, 1, null],
      [2, 2, null],
      [3, 9, 'x'],
    ])
  },
  'shows after each epoch what upserting and deleting one by one would': async (database) => {
    const random = prng(2)
    const { rig, rows } = await rigOn(database, pairs, upsert)
    const wanted = new Map<number, AnyRow>()
    for (let epoch = 1; epoch <= 6; epoch++) {
      const ops = Array.from({ length: 200 }, () => {
        const k = random.int(12)
        if (random.chance(0.25)) return [null, k] as const
        const row: AnyRow = { k }
        if (random.chance(0.7)) row.a = random.chance(0.2) ? null : random.int(100)
        if (random.chance(0.7)) row.b = random.chance(0.2) ? null : `b${random.int(100)}`
        return [row, k] as const
      })
      for (const [row, k] of ops) {
        if (row === null) wanted.delete(k)
        else wanted.set(k, { a: null, b: 'unset', ...wanted.get(k), ...row })
      }
      await rig.run(ops, 60)
      const seen = (await rows()).map(({ k, a, b }) => ({ k: Number(k), a, b }))
      const folded = [...wanted.values()].sort((x, y) => x.k - y.k).map(({ k, a, b }) => ({ k, a, b }))
      assert.deepEqual(seen, folded)
    }
  },
  'identifies rows by several columns, and deletes by them': async (database) => {
    const options = { mode: 'upsert', key: ['k', 'n'] } as const
    const { rig, rows } = await rigOn(database, '(v int, n varchar(20), k int, PRIMARY KEY (k, n))', options)
    await rig.run([
      [{ v: 1, n: 'x', k: 1 }],
      [{ v: 2, n: 'y', k: 1 }],
      [{ v: 3, n: "o'", k: 2 }],
      [{ k: 1, n: 'x', v: 4 }],
    ])
    await rig.run([
      [null, { k: 2, n: "o'" }],
      [null, { k: 7, n: 'z' }],
    ])
    assert.deepEqual(
      (await rows('k, n')).map(({ k, n, v }) => [k, n, v]),
      [
        [1, 'x', 4],
        [1, 'y', 2],
      ],
    )
  },
  'keeps rows that are nothing but their key': async (database) => {
    const { rig, rows } = await rigOn(database, '(k int PRIMARY KEY)', upsert)
    await rig.run([[{ k: 1 }], [{ k: 2 }], [{ k: 1 }], [null, 2]])
    assert.deepEqual(
      (await rows()).map(({ k }) => k),
      [1],
    )
  },
  'refuses what no column can hold when it is staged, and keeps nothing of it': async (database) => {
    const { rig, rows } = await rigOn(database, '(k int, v text)', { row: (value) => value as AnyRow })
    const circle: AnyRow = {}
    circle.self = circle
    const writer = await rig.sink.stage({
      store: rig.store,
      prefix: 'x/',
      incarnation: rig.incarnation,
      epoch: 1,
      lanes: 1,
    })
    for (const v of ['\ud800', new Date(Number.NaN), () => 1, Symbol('s'), circle]) {
      assert.throws(() => writer.add('k', { k: 1, v }, 0, 0))
    }
    for (const row of [null, 7, 'text', [1], {}])
      assert.throws(() => writer.add('k', row, 0, 0), { code: 'ENCODE_FAILED' })
    assert.equal(writer.bufferedBytes, 0)
    assert.deepEqual(await rows(), [])
  },
}

/** A value that does not fit `v int` is in the middle of a block. */
const refusing: Record<string, Case> = {}
for (const mode of ['insert', 'upsert'] as const) {
  const key = { mode, key: ['k'] }
  refusing[`${mode}: names sink, row, epoch and column of a value that does not fit, and goes on once mended`] = async (
    database,
  ) => {
    const { table, rig, rows } = await rigOn(database, '(k bigint PRIMARY KEY, v int)', key)
    await rig.run([[{ k: 1, v: 1 }]])
    const big = 5_000_000_000
    const values = Array.from({ length: 700 }, (_, i) => [{ k: 10 + i, v: i === 321 ? big : i }] as const)
    const committable = await rig.stage(values, 100)
    for (let tries = 0; tries < 2; tries++) {
      const error = await codeOf(rig.promote(committable))
      assert.equal(error.code, 'ROWS_REFUSED', error.message)
      const { sink, lane, epoch, rowKey, column } = error.details
      assert.deepEqual({ sink, lane, epoch, rowKey }, { sink: 'rows', lane: 0, epoch: 2, rowKey: 'k=331' })
      assert.equal(column, 'v')
      assert.match(error.message, /sink rows, lane 0, epoch 2.*row k=331/)
      assert.equal((await rows()).length, 1)
      assert.deepEqual(await rig.sink.marker(0), markerOf(rig.incarnation, 1))
    }
    await database.query(`ALTER TABLE ${table} ${database.widen('v')}`)
    assert.deepEqual(await rig.promote(committable), { result: 'promoted' })
    assert.deepEqual(
      (await rows()).map(({ k, v }) => [Number(k), Number(v)]),
      [[1, 1], ...values.map(([{ k, v }]) => [k, v])],
    )
  }
  refusing[`${mode}: names the first row that breaks a constraint`] = async (database) => {
    const { rig, rows } = await rigOn(database, '(k int PRIMARY KEY, v int, CONSTRAINT positive CHECK (v > 0))', key)
    const values = Array.from({ length: 300 }, (_, i) => [{ k: i, v: i === 200 || i === 250 ? -1 : 1 }] as const)
    const error = await codeOf(rig.promote(await rig.stage(values)))
    assert.equal(error.code, 'ROWS_REFUSED', error.message)
    assert.equal(error.details.rowKey, 'k=200')
    assert.equal(error.details.column, 'v')
    assert.match(error.message, /positive/)
    assert.deepEqual(await rows(), [])
  }
  refusing[`${mode}: names a column that the table lacks, and goes on once it is there`] = async (database) => {
    const { table, rig, rows } = await rigOn(database, '(k int PRIMARY KEY)', key)
    const committable = await rig.stage([[{ k: 1, city: 'Brno' }]])
    const error = await codeOf(rig.promote(committable))
    assert.equal(error.code, 'SINK_SCHEMA_INVALID', error.message)
    assert.equal(error.details.column, 'city')
    await database.query(`ALTER TABLE ${table} ADD COLUMN city varchar(10)`)
    assert.deepEqual(await rig.promote(committable), { result: 'promoted' })
    assert.deepEqual(
      (await rows()).map((row) => ({ ...row })),
      [{ k: 1, city: 'Brno' }],
    )
  }
}
Object.assign(refusing, {
  'insert: a key that is there already is refused by name': async (database) => {
    const { rig } = await rigOn(database, '(k int PRIMARY KEY)', { key: ['k'] })
    await rig.run([[{ k: 1 }], [{ k: 2 }]])
    const error = await codeOf(rig.promote(await rig.stage([[{ k: 3 }], [{ k: 2 }], [{ k: 4 }]])))
    assert.equal(error.code, 'ROWS_REFUSED', error.message)
    assert.deepEqual([error.details.rowKey, error.details.column], ['k=2', 'k'])
  },
  'upsert: a table without a unique index on the key is refused': async (database) => {
    const { rig } = await rigOn(database, '(k int, v int)', upsert)
    const error = await codeOf(rig.promote(await rig.stage([[{ k: 1, v: 1 }]])))
    assert.equal(error.code, 'SINK_SCHEMA_INVALID', error.message)
  },
  'a table that is not there is refused, and written once it is': async (database) => {
    const { table, rig, rows } = await rigOn(database, '(k int)')
    await database.query(`DROP TABLE ${table}`)
    const committable = await rig.stage([[{ k: 1 }]])
    assert.equal((await codeOf(rig.promote(committable))).code, 'SINK_SCHEMA_INVALID')
    await database.query(`CREATE TABLE ${table} (k int)`)
    assert.deepEqual(await rig.promote(committable), { result: 'promoted' })
    assert.equal((await rows()).length, 1)
  },
} satisfies Record<string, Case>)

/** Runs with a proxy between the sink and its server. */
async function throughProxy(database: TableDatabase, act: (proxy: CuttingProxy, url: string) => Promise<void>) {
  const proxy = await cuttingProxy(database.server.port)
  const url = new URL(database.url)
  url.port = String(proxy.port)
  try {
    await act(proxy, url.href)
  } finally {
    await proxy.close()
  }
}

/** Cuts at COMMIT, and what must be found then. */
const lostCommit =
  (when: 'before' | 'after'): Case =>
  (database) =>
    throughProxy(database, async (proxy, url) => {
      const { rig, rows } = await rigOn(database, '(k int)', { url })
      const committable = await rig.stage([[{ k: 1 }], [{ k: 2 }]])
      proxy.cut(/COMMIT(?!TED)/, when)
      const error = await codeOf(rig.promote(committable))
      assert.equal(error.code, 'UNKNOWN_RESULT', error.message)
      assert.equal(proxy.cuts, 1)
      const then = await settled(rig, committable)
      const mine = markerOf(rig.incarnation, 1)
      assert.deepEqual(then, when === 'after' ? { result: 'refused', found: mine } : { result: 'promoted' })
      assert.equal((await rows()).length, 2)
    })

/** Kills the server while an epoch is promoted, again and again. */
async function killInPromote(database: TableDatabase, rig: TableRig, epochs: number): Promise<number> {
  const random = prng(3)
  let killed = 0
  for (let epoch = 1; epoch <= epochs; epoch++) {
    const committable = await rig.stage(Array.from({ length: 10_000 }, (_, i) => [{ k: epoch * 100_000 + i }]))
    let pending = true
    const promoting = rig.promote(committable).then(
      () => undefined,
      (error: unknown) => {
        if (!isPawlError(error) || error.kind !== 'Retryable') throw error
      },
    )
    promoting.finally(() => {
      pending = false
    })
    // From one millisecond on: a small epoch is promoted in a few, a busy machine takes longer.
    await sleep(2 ** (epoch % 6) * (1 + random.next()))
    if (pending) killed++
    await database.server.kill()
    await database.server.restart()
    await promoting
    const { result, ...rest } = await settled(rig, committable)
    if (result === 'refused') assert.deepEqual(rest, { found: markerOf(rig.incarnation, epoch) })
  }
  return killed
}

const failing: Record<string, Case> = {
  'case 1: an answer to COMMIT that is lost after the commit is found to have landed': lostCommit('after'),
  'a COMMIT that is lost on its way is found not to have landed': lostCommit('before'),
  'gives up on a lock that somebody else holds for longer than any timeout, and goes on when it is free': async (
    database,
  ) => {
    const { table, rig, rows } = await rigOn(database, '(k int)')
    const committable = await rig.stage([[{ k: 1 }]])
    const release = await database.lockTable(table)
    const error = await codeOf(rig.promote(committable))
    assert.equal(error.code, 'SINK_UNAVAILABLE', error.message)
    await release()
    assert.deepEqual(await settled(rig, committable), { result: 'promoted' })
    assert.equal((await rows()).length, 1)
  },
  'tries again by itself when its connection broke before the commit': (database) =>
    throughProxy(database, async (proxy, url) => {
      const { rig, rows } = await rigOn(database, '(k int)', { url })
      await rig.run([[{ k: 1 }]])
      for (const words of [/BEGIN|START/, /FOR UPDATE/, /rows?_|t_/, /UPDATE .*markers/]) {
        proxy.cut(words, 'after')
        await rig.run([[{ k: 2 }]])
      }
      assert.equal(proxy.cuts, 4)
      assert.equal((await rows()).length, 5)
    }),
  'gives up on a network that swallows everything, and goes on when it is back': (database) =>
    throughProxy(database, async (proxy, url) => {
      const { rig, rows } = await rigOn(database, '(k int)', { url, timeoutMs: 500, connectTimeoutMs: 200 })
      await rig.run([[{ k: 1 }]])
      const committable = await rig.stage([[{ k: 2 }]])
      proxy.silent = true
      const error = await codeOf(rig.promote(committable))
      assert.equal(error.code, 'SINK_UNAVAILABLE', error.message)
      proxy.silent = false
      await settled(rig, committable)
      assert.equal((await rows()).length, 2)
      proxy.silent = true
      await rig.sink.close()
    }),
  'shows each epoch once when the server is killed while it is promoted': async (database) => {
    const { rig, table } = await rigOn(database, '(k int)')
    const killed = await killInPromote(database, rig, 5)
    assert.ok(killed > 0, 'no kill met a promotion')
    const [counted] = await database.query(`SELECT count(*) AS n, count(DISTINCT k) AS d FROM ${table}`)
    assert.deepEqual([Number(counted?.n), Number(counted?.d)], [50_000, 50_000])
  },
  'says that the sink is unavailable while its server is down': async (database) => {
    const { rig } = await rigOn(database, '(k int)')
    await database.server.kill()
    try {
      assert.equal((await codeOf(rig.sink.marker(0))).code, 'SINK_UNAVAILABLE')
    } finally {
      await database.server.restart()
    }
    assert.deepEqual(await rig.sink.marker(0), markerOf(rig.incarnation, 0))
  },
}

const secret = 'hunter2-do-not-print'

const secrets: Record<string, Case> = {
  'puts nothing of a connection string into an error': async (database) => {
    const mistakes = [
      `${secret}`,
      `https://u:${secret}@host/db`,
      `${database.url}?sslmode=${secret}`,
      `${database.url}?pass=${secret}`,
    ]
    for (const connection of mistakes) {
      const rig = await tableRig(database.spec({ table: 't', connection: () => connection }))
      const error = await codeOf(rig.base())
      assert.equal(error.code, 'PIPELINE_INVALID')
      assert.ok(!inspect(error, { depth: 10, showHidden: true }).includes(secret), error.message)
    }
  },
  'puts no password into the error of a server that is not there, nor into a spec': async (database) => {
    const spec = database.spec({
      table: 't',
      connection: `${new URL(database.url).protocol}//u:${secret}@127.0.0.1:1/db`,
    })
    assert.ok(!inspect(spec, { depth: 10, showHidden: true }).includes(secret))
    const error = await codeOf((await tableRig(spec)).base())
    assert.equal(error.code, 'SINK_UNAVAILABLE')
    assert.ok(!inspect(error, { depth: 10, showHidden: true }).includes(secret))
  },
}

/** Cases by name. */
export const tableCases: Readonly<Record<string, Case>> = { ...writing, ...refusing, ...failing, ...secrets }
