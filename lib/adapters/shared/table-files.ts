/**
 * Where the files of a lake table lie: a directory or a prefix of a bucket that other engines read and write too.
 *
 * Apart from the store, whose objects are ours alone: here names are what a format prescribes, foreign files lie among
 * ours, and a few small files (hints for readers) are replaced. Whoever opens a table picks the implementation, so that
 * a table's adapter knows neither disk nor bucket.
 */

/** The files of one table. A lost answer is thrown as `UNKNOWN_RESULT` or as unavailable; the caller reads back. */
export interface TableFiles {
  /** As errors name it: a path, or `s3://bucket/prefix`. */
  readonly location: string
  /** Creates the file, whole and durable, unless its name is taken; never replaces. Names are relative to the table. */
  create(name: string, bytes: Uint8Array): Promise<'created' | 'exists'>
  /** Writes the file whatever was there; whole for every reader. */
  replace(name: string, bytes: Uint8Array): Promise<void>
  /** The whole file; null when there is none. */
  read(name: string): Promise<Buffer | null>
  /** Names of the files in `folder` (no slash at its end) that sort after `after` as bytes, sorted; without the folder. */
  list(folder: string, after: string): Promise<string[]>
  close(): Promise<void>
}

/** Opens the files of a table; `location` as in `TableFiles`. Nothing is called or made before the first use. */
export type OpenTableFiles = (location: string) => TableFiles
