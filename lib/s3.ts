/**
 * `pawl/s3`: files in a bucket as exactly-once sinks.
 *
 * Apart from the main entry because it needs `@aws-sdk/client-s3`, an optional peer, as soon as a lane of such a sink is
 * registered, and `hyparquet-writer` when rows are staged for Parquet.
 */
export type { FileFormat } from './adapters/s3/file-encoders.ts'
export type { PartitionBy, PartitionValues } from './adapters/s3/file-form.ts'
export { type S3FilesOptions, s3Files } from './adapters/s3/files.ts'
export type { AwsOptions } from './adapters/shared/aws.ts'
export type { ColumnSpec, ColumnSpecs, ColumnType } from './adapters/shared/parquet-columns.ts'
