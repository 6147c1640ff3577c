/**
 * `pawl/postgres`: tables of PostgreSQL as exactly-once sinks.
 *
 * Apart from the main entry because it needs `pg` and `pg-copy-streams`, optional peers, as soon as a lane of such a
 * sink is registered.
 */
export { markerTableSql, refusedTableSql } from './adapters/postgres/markers.ts'
export { type PostgresOptions, postgres } from './adapters/postgres/sink.ts'
export type { DatabaseConnection, DatabaseParts } from './adapters/shared/database-address.ts'
export { type Secret, secretFile } from './adapters/shared/secret.ts'
export type { TableOptions } from './adapters/shared/table-options.ts'
export type { SqlRow, SqlValue, TableMode } from './adapters/shared/table-rows.ts'
