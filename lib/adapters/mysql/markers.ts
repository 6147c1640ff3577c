/**
 * The table of markers: one row a lane, in the same database as the rows, so that one backup holds both.
 *
 * Made when the first lane is registered, unless it is there; a user without the right to make tables lets
 * somebody else run the statement below. Names are compared byte by byte, whatever the database's collation.
 */
import { quotedTable } from './text.ts'

/** Name of the table, unless said otherwise. */
export const markerTableDefault = 'pawl_markers'

/** The statement that makes the table of markers. */
export function markerTableSql(table = markerTableDefault): string {
  return `CREATE TABLE IF NOT EXISTS ${quotedTable(table)} (
  stage varchar(100) NOT NULL,
  pipeline varchar(200) NOT NULL,
  sink varchar(200) NOT NULL,
  lane int NOT NULL,
  incarnation varchar(64) NOT NULL,
  epoch bigint NOT NULL,
  hash varchar(128) NOT NULL,
  PRIMARY KEY (stage, pipeline, sink, lane)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`
}

/** Name of the table of refused rows, unless said otherwise. */
export const refusedTableDefault = 'pawl_refused'

/** The statement that makes the table in which refused rows wait; `refused` is the row and the reason, as JSON. */
export function refusedTableSql(table = refusedTableDefault): string {
  return `CREATE TABLE IF NOT EXISTS ${quotedTable(table)} (
  stage varchar(100) NOT NULL,
  pipeline varchar(200) NOT NULL,
  sink varchar(200) NOT NULL,
  lane int NOT NULL,
  id varchar(40) NOT NULL,
  epoch bigint NOT NULL,
  row_index bigint NOT NULL,
  refused longtext NOT NULL,
  PRIMARY KEY (stage, pipeline, sink, lane, id)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`
}
