/**
 * `pawl/doris`: tables of Apache Doris as sinks.
 *
 * Apart from the main entry as the other databases are; it needs no package.
 */
export { type DorisOptions, doris } from './adapters/doris/sink.ts'
export type { DatabaseConnection, DatabaseParts } from './adapters/shared/database-address.ts'
export { type Secret, secretFile } from './adapters/shared/secret.ts'
export type { SqlRow, SqlValue } from './adapters/shared/table-rows.ts'
