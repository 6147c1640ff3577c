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
