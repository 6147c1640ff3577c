/**
 * The table of markers: one row a lane, in the same database as the rows, so that one backup holds both.
 *
 * Made when the first lane is registered, unless it is there; a user without the right to make tables lets
 * somebody else run the statement below.
 */
import { quotedTable } from './text.ts'

/** Name of the table, unless said otherwise; found by the search path. */
export const markerTableDefault = 'pawl_markers'

/** The statement that makes the table of markers. */
export function markerTableSql(table = markerTableDefault): string {
  return `CREATE TABLE IF NOT EXISTS ${quotedTable(table)} (
  stage text NOT NULL,
  pipeline text NOT NULL,
  sink text NOT NULL,
  lane integer NOT NULL,
  incarnation text NOT NULL,
  epoch bigint NOT NULL,
  hash text NOT NULL,
  PRIMARY KEY (stage, pipeline, sink, lane)
)`
}

/** Name of the table of refused rows, unless said otherwise. */
export const refusedTableDefault = 'pawl_refused'

/** The statement that makes the table in which refused rows wait; `refused` is the row and the reason, as JSON. */
export function refusedTableSql(table = refusedTableDefault): string {
  return `CREATE TABLE IF NOT EXISTS ${quotedTable(table)} (
  stage text NOT NULL,
  pipeline text NOT NULL,
  sink text NOT NULL,
  lane integer NOT NULL,
  id text NOT NULL,
  epoch bigint NOT NULL,
  row_index bigint NOT NULL,
  refused text NOT NULL,
  PRIMARY KEY (stage, pipeline, sink, lane, id)
)`
}
