/**
 * A ledger in one SQLite file, for any number of processes of one machine.
 *
 * Every write is one transaction under the file's write lock and durable before it returns; a head is replaced
 * by one UPDATE whose condition holds its revision. Statements are prepared once. SQLite works on this thread: a
 * write takes one fsync, and calls alone leave no turn to other work. A lock that somebody else holds is waited
 * for in steps, between which the event loop runs, up to `busyMs`. Texts carry a CRC-32: what the disk changed is `LEDGER_DAMAGED`, never a wrong head.
 */
import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { PawlError } from '../../model/errors.ts'
import type { Head, HistoryItem } from '../../model/head.ts'
import type { Ledger, SwapOptions } from '../../ports/ledger.ts'
import { assertCreatable, assertEpochRange, assertSwappable } from '../shared/head-writes.ts'
import { openDatabase } from './database.ts'
import { isBusy, ledgerError } from './sqlite-errors.ts'

/** Choices of whoever opens the ledger. */
export interface SqliteLedgerOptions {
  /** How long a call waits for a lock before it throws `LEDGER_BUSY`; 5 s unless said otherwise. */
  readonly busyMs?: number
}

const busyMsDefault = 5_000
/** Between two tries; SQLite has waited by itself before. */
const pauseMs = 5

type Statements = ReturnType<typeof prepareAll>

/**
 * The ledger in `file`, which is made with its directory by the first call if it is not there.
 *
 * Calls throw `LEDGER_TOO_NEW`, `LEDGER_DAMAGED`, `LEDGER_BUSY`, `LEDGER_UNAVAILABLE`, `DISK_FULL`, and for a
 * write whose outcome is open `UNKNOWN_RESULT`.
 */
export function sqliteLedger(file: string, options: SqliteLedgerOptions = {}): Ledger {
  const path = resolve(file)
  const busyMs = options.busyMs ?? busyMsDefault
  let opened: { readonly database: DatabaseSync; readonly statements: Statements } | null = null
  let closed = false

  const open = () => {
    if (closed) throw new PawlError('ASSERTION_FAILED', `the ledger ${path} was closed`)
    if (opened === null) {
      const database = openDatabase(path)
      opened = { database, statements: prepareAll(database) }
    }
    return opened
  }
  const attempt = async <T>(deed: 'read' | 'write', work: (s: Statements, d: DatabaseSync) => T): Promise<T> => {
    for (let waitedMs = 0; ; ) {
      const startMs = performance.now()
      try {
        const { database, statements } = open()
        return deed === 'read'
          ? work(statements, database)
          : rolledBackOnError(database, () => work(statements, database))
      } catch (error) {
        if (!isBusy(error) || waitedMs >= busyMs) throw ledgerError(error, deed, path)
        await pause(pauseMs)
        waitedMs += performance.now() - startMs
      }
    }
  }
  const damaged = (what: string, cause?: unknown) =>
    new PawlError('LEDGER_DAMAGED', `${what} in ${path}`, { file: path }, cause)

  return {
    read: (pipeline) => attempt('read', (s) => headOf(s.read.get(pipeline), pipeline, damaged)),
    async create(head, history) {
      assertCreatable(head, history)
      return attempt('write', (s, database) => createHead(database, s, head, history))
    },
    async swap(expected, head, swapOptions) {
      assertSwappable(expected, head, swapOptions)
      return attempt('write', (s, database) => swapHead(database, s, expected, head, swapOptions))
    },
    history: (pipeline, epoch) =>
      attempt('read', (s) => {
        const row = s.history.get(pipeline, epoch)
        return row === undefined ? null : itemOf(row, damaged)
      }),
    async histories(pipeline, from, to) {
      assertEpochRange(from, to)
      return attempt('read', (s) => s.histories.all(pipeline, from, to).map((row) => itemOf(row, damaged)))
    },
    // `all` and not `get`: only a statement that ran to its end reports that its commit failed.
    ring: (pipeline) => attempt('write', (s) => Number(s.ring.all(pipeline)[0]!.count)),
    wakes: (pipeline) => attempt('read', (s) => Number(s.wakes.get(pipeline)?.count ?? 0)),
    pipelines: () => attempt('read', (s) => s.pipelines.all().map((row) => String(row.pipeline))),
    async close() {
      closed = true
      opened?.database.close()
      opened = null
    },
  }
}

function prepareAll(database: DatabaseSync) {
  return {
    read: database.prepare('SELECT revision, head AS text, crc FROM heads WHERE pipeline = ?'),
    insertHead: database.prepare('INSERT INTO heads VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING'),
    updateHead: database.prepare(
      `UPDATE heads SET revision = ?, head = ?, crc = ? WHERE pipeline = ? AND revision = ?
       AND coalesce(?, head ->> 'write') = head ->> 'write'
       AND coalesce(?, coalesce((SELECT count FROM wakes WHERE wakes.pipeline = heads.pipeline), 0))
         = coalesce((SELECT count FROM wakes WHERE wakes.pipeline = heads.pipeline), 0)`,
    ),
    insertHistory: database.prepare('INSERT INTO history VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING'),
    history: database.prepare('SELECT epoch, item AS text, crc FROM history WHERE pipeline = ? AND epoch = ?'),
    histories: database.prepare(
      'SELECT epoch, item AS text, crc FROM history WHERE pipeline = ? AND epoch >= ? AND epoch < ? ORDER BY epoch',
    ),
    ring: database.prepare(
      'INSERT INTO wakes VALUES (?, 1) ON CONFLICT (pipeline) DO UPDATE SET count = count + 1 RETURNING count',
    ),
    wakes: database.prepare('SELECT count FROM wakes WHERE pipeline = ?'),
    pipelines: database.prepare('SELECT pipeline FROM heads ORDER BY pipeline'),
  }
}

/** A failed statement or commit may leave its transaction open; the next call must not find it. */
function rolledBackOnError<T>(database: DatabaseSync, write: () => T): T {
  try {
    return write()
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function createHead(database: DatabaseSync, s: Statements, head: Head, history: HistoryItem): 'created' | 'exists' {
  const text = JSON.stringify(head)
  database.exec('BEGIN IMMEDIATE')
  const created = s.insertHead.run(head.pipeline, head.revision, text, crc32(text)).changes === 1
  if (created && !addHistory(s, head.pipeline, history)) {
    throw new PawlError('LEDGER_DAMAGED', `pipeline ${head.pipeline} has a history but no head`, {
      pipeline: head.pipeline,
    })
  }
  database.exec('COMMIT')
  return created ? 'created' : 'exists'
}

function swapHead(
  database: DatabaseSync,
  s: Statements,
  expected: number,
  head: Head,
  { seen, history, wakes }: SwapOptions = {},
): 'swapped' | 'moved' {
  const text = JSON.stringify(head)
  const update = () =>
    s.updateHead.run(head.revision, text, crc32(text), head.pipeline, expected, seen ?? null, wakes ?? null).changes ===
    1
  if (history === undefined) return update() ? 'swapped' : 'moved'
  database.exec('BEGIN IMMEDIATE')
  const swapped = update() && addHistory(s, head.pipeline, history)
  database.exec(swapped ? 'COMMIT' : 'ROLLBACK')
  return swapped ? 'swapped' : 'moved'
}

/** False when the epoch is there already. */
function addHistory(s: Statements, pipeline: string, item: HistoryItem): boolean {
  const text = JSON.stringify(item)
  return s.insertHistory.run(pipeline, item.epoch, text, crc32(text)).changes === 1
}

type Row = Record<string, unknown>
type Damaged = (what: string, cause?: unknown) => PawlError

function parse(row: Row, what: string, damaged: Damaged): unknown {
  const text = String(row.text)
  if (crc32(text) !== Number(row.crc)) throw damaged(`${what} does not match its checksum`)
  return JSON.parse(text)
}

function headOf(row: Row | undefined, pipeline: string, damaged: Damaged): Head | null {
  if (row === undefined) return null
  const head = parse(row, `the head of ${pipeline}`, damaged) as Head
  if (head.pipeline === pipeline && head.revision === row.revision) return head
  throw damaged(`the head of ${pipeline} lies under a wrong key`)
}

function itemOf(row: Row, damaged: Damaged): HistoryItem {
  const item = parse(row, `epoch ${row.epoch}`, damaged) as HistoryItem
  if (item.epoch === row.epoch) return item
  throw damaged(`epoch ${row.epoch} lies under a wrong key`)
}
