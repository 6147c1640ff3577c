/**
 * `postgres({...})`: a table of PostgreSQL as an exactly-once sink.
 *
 * Plain data until a place opens it, and connected only when a lane is registered or promoted. Rows wait in the
 * store in the text format of COPY; a promote writes them and the lane's marker in one transaction. Works through
 * poolers of connections in transaction mode. Credentials stay in a closure, so that a spec can be printed.
 */
import type { CustomSinkSpec } from '../../ports/spec.ts'
import { addressOf, type DatabaseConnection } from '../shared/database-address.ts'
import { secretsIn } from '../shared/secret.ts'
import { sessionPool } from '../shared/session-pool.ts'
import { type TableOptions, tableForm, tableMaker } from '../shared/table-options.ts'
import type { TableSession } from '../shared/table-session.ts'
import { tableSink } from '../shared/table-sink.ts'
import { clientConfig, loadDriver } from './driver.ts'
import { translated } from './errors.ts'
import { markerTableDefault, markerTableSql, refusedTableDefault, refusedTableSql } from './markers.ts'
import { pgSession } from './session.ts'
import { cellText } from './text.ts'

/** A table of PostgreSQL; names are case-sensitive, as in quotes. */
export interface PostgresOptions<K, V> extends TableOptions<K, V> {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full`, a function that gives it, or its parts. */
  readonly connection: DatabaseConnection
}

const blocks = Object.freeze({ rowsMax: 100_000, bytesMax: 8 * 1024 * 1024 })
/** What one lane certainly does in a quarter of a promotion's time: 15 s at 65,000 rows or 16 MiB a second. */
const limits = Object.freeze({ laneRowsMax: 1_000_000, laneBytesMax: 256 * 1024 * 1024 })
const sqlLimits = Object.freeze({ laneRowsMax: 50_000, laneBytesMax: 64 * 1024 * 1024 })

/** Describes a table of PostgreSQL. Throws `PIPELINE_INVALID` for options that contradict each other. */
export function postgres<V, K = unknown>(options: PostgresOptions<K, V>): CustomSinkSpec<K, V> {
  const form = tableForm('postgres', options)
  const { lanes = 1, lockTimeoutMs = 10_000, statementTimeoutMs = 30_000, connectTimeoutMs = 5000 } = options
  const { timeoutMs = 60_000, markerTable = markerTableDefault, connection } = options
  const { onReject = 'park', refusedTable = refusedTableDefault } = options
  return Object.freeze({
    kind: 'sink',
    type: 'postgres',
    guarantee: 'exactly-once',
    onReject,
    lanes,
    resources: secretsIn(connection),
    async open(sink, { stage, pipeline, store }) {
      const session = { sink, markerTable, refusedTable, lockTimeoutMs, statementTimeoutMs }
      const open = async (): Promise<TableSession> => {
        const { Client, copyFrom } = await loadDriver()
        const address = await addressOf(connection, { sink, protocols: ['postgres:', 'postgresql:'], port: 5432 })
        const client = new Client(clientConfig(address, connectTimeoutMs))
        const opened = pgSession(client, copyFrom, session)
        await client.connect().catch((error: unknown) => {
          throw translated(error, sink)
        })
        return opened
      }
      return tableSink({
        technology: 'postgres',
        identity: { stage, pipeline, sink },
        form,
        maker: tableMaker(options),
        cell: cellText,
        blocks,
        markerTableSql: markerTableSql(markerTable),
        refusedTableSql: refusedTableSql(refusedTable),
        onReject,
        limits: form.mode === 'sql' ? sqlLimits : limits,
        sessions: sessionPool({ sink, open, idleMax: lanes, timeoutMs }),
        store,
      })
    },
  } satisfies CustomSinkSpec<K, V>)
}
