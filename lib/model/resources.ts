/**
 * What of AWS a sink uses beside what every pipeline uses, as plain data.
 *
 * A spec declares it and synthesis makes the least rights of it; nothing of this is read when a pipeline runs.
 */

/** A table, a bucket or a secret of somebody else's. */
export type AwsResource = TableResource | BucketResource | SecretResource

/** A secret of Secrets Manager, read whenever a connection opens. */
export interface SecretResource {
  readonly of: 'secretsmanager'
  readonly secretArn: string
}

/** Items of a table. */
export interface TableResource {
  readonly of: 'dynamodb'
  readonly table: string
  /** Type of its partition key. */
  readonly keyType: 'S' | 'N' | 'B'
  /** Null: markers lie in the table itself. */
  readonly markerTable: string | null
  /** Where refused rows wait for their epoch; null or absent: they park. */
  readonly refusedTable?: string | null
  /** It deletes items. */
  readonly deletes: boolean
  /** The deployment's unless it is given. */
  readonly region?: string
}

/** Objects of a bucket. */
export interface BucketResource {
  readonly of: 's3'
  readonly bucket: string
  /** All objects of the sink lie below it; those of its markers below `markers`. */
  readonly prefix: string
  readonly markers: string
}
