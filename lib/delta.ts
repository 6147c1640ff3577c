/**
 * `pawl/delta`: Delta tables on disk and on S3 as exactly-once sinks.
 *
 * Apart from the main entry because it needs `hyparquet-writer`, an optional peer, when rows are staged, `hyparquet` when
 * a log has checkpoints, and `@aws-sdk/client-s3` for tables on S3. Here a table's adapter is given disk and bucket.
 */
import type { TablePlace } from './adapters/delta/sink.ts'
import { type DeltaTableOptions, deltaSpec } from './adapters/delta/spec.ts'
import { directoryAt, diskTableFiles, placedDirectory } from './adapters/file/table-files.ts'
import { type S3TableOptions, s3TableFiles } from './adapters/s3/table-files.ts'
import type { CustomSinkSpec } from './ports/spec.ts'

export type { DeltaTableOptions } from './adapters/delta/spec.ts'
export type { S3TableOptions } from './adapters/s3/table-files.ts'
export type { ColumnSpec, ColumnSpecs, ColumnType } from './adapters/shared/parquet-columns.ts'

/** A Delta table, and how it is reached. */
export interface DeltaOptions<K, V> extends DeltaTableOptions<K, V> {
  /** Region, endpoint or credentials of S3 that are not those of the environment. */
  readonly s3?: S3TableOptions
}

/** Describes a Delta table. Throws `PIPELINE_INVALID` for options that contradict each other. */
export function delta<V, K = unknown>(options: DeltaOptions<K, V>): CustomSinkSpec<K, V> {
  return deltaSpec(options, tablePlace(options.s3))
}

const isInBucket = (table: string) => /^s3a?:\/\//.test(table)

function tablePlace(s3: S3TableOptions | undefined): TablePlace {
  return {
    locate: (table, within) => (isInBucket(table) ? s3TableFiles(table, s3).location : placedDirectory(table, within)),
    open: (located, within) =>
      isInBucket(located) ? s3TableFiles(located, s3) : diskTableFiles(directoryAt(located, within)),
  }
}
