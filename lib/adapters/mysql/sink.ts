/**
 * `mysql({...})`: a table of MySQL or MariaDB as an exactly-once sink.
 *
 * Plain data until a place opens it, and connected only when a lane is registered or promoted. Rows wait in the
 * store as literals; a promote writes them as multi-row statements and moves the lane's marker in one transaction.
 * Credentials stay in a closure, so that a spec can be printed.
 */
import type { CustomSinkSpec } from '../../ports/spec.ts'
import { addressOf, type DatabaseConnection } from '../shared/database-address.ts'
import { secretsIn } from '../shared/secret.ts'
import { sessionPool } from '../shared/session-pool.ts'
import { type TableOptions, tableForm, tableMaker } from '../shared/table-options.ts'
import type { TableSession } from '../shared/table-session.ts'
import { tableSink } from '../shared/table-sink.ts'
import { connectionConfig, loadDriver } from './driver.ts'
import { translated } from './errors.ts'
import { markerTableDefault, markerTableSql, refusedTableDefault, refusedTableSql } from './markers.ts'
import { mySqlSession, prepareConnection } from './session.ts'
import { cellText } from './text.ts'

/** A table of MySQL or MariaDB, of an engine with transactions. */
export interface MySqlOptions<K, V> extends TableOptions<K, V> {
  /** `mysql://user:password@host:3306/database?sslmode=require`, a function that gives it, or its parts. */
  readonly connection: DatabaseConnection
}

/** One statement a block; servers take packets of 16 MiB and more unless they are told otherwise. */
const blocks = Object.freeze({ rowsMax: 5000, bytesMax: 512 * 1024 })
/** What one lane certainly does in a quarter of a promotion's time: 15 s at 20,000 rows or 8 MiB a second. */
const limits = Object.freeze({ laneRowsMax: 300_000, laneBytesMax: 128 * 1024 * 1024 })
const sqlLimits = Object.freeze({ laneRowsMax: 30_000, laneBytesMax: 32 * 1024 * 1024 })

/** Describes a table of MySQL or MariaDB. Throws `PIPELINE_INVALID` for options that contradict each other. */
export function mysql<V, K = unknown>(options: MySqlOptions<K, V>): CustomSinkSpec<K, V> {
  const form = tableForm('mysql', options)
  const { lanes = 1, lockTimeoutMs = 10_000, statementTimeoutMs = 30_000, connectTimeoutMs = 5000 } = options
  const { timeoutMs = 60_000, markerTable = markerTableDefault, connection } = options
  const { onReject = 'park', refusedTable = refusedTableDefault } = options
  return Object.freeze({
    kind: 'sink',
    type: 'mysql',
    guarantee: 'exactly-once',
    onReject,
    lanes,
    resources: secretsIn(connection),
    async open(sink, { stage, pipeline, store }) {
      const open = async (): Promise<TableSession> => {
        const { createConnection } = await loadDriver()
        const address = await addressOf(connection, { sink, protocols: ['mysql:', 'mariadb:'], port: 3306 })
        try {
          const client = await createConnection(connectionConfig(address, connectTimeoutMs))
          const opened = mySqlSession(client, { sink, markerTable, refusedTable, lockTimeoutMs, statementTimeoutMs })
          await prepareConnection(client, { lockTimeoutMs, connectTimeoutMs })
          return opened
        } catch (error) {
          throw translated(error, sink)
        }
      }
      return tableSink({
        technology: 'mysql',
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
