/**
 * `pawl/mysql`: tables of MySQL and MariaDB as exactly-once sinks.
 *
 * Apart from the main entry because it needs `mysql2`, an optional peer, as soon as a lane of such a sink is
 * registered.
 */
export { markerTableSql, refusedTableSql } from './adapters/mysql/markers.ts'
export { type MySqlOptions, mysql } from './adapters/mysql/sink.ts'
export type { DatabaseConnection, DatabaseParts } from './adapters/shared/database-address.ts'
export { type Secret, secretFile } from './adapters/shared/secret.ts'
export type { TableOptions } from './adapters/shared/table-options.ts'
export type { SqlRow, SqlValue, TableMode } from './adapters/shared/table-rows.ts'
