/**
 * What a listing of the log's folder says: which versions have entries, and which checkpoint is the newest whole one.
 *
 * Pure. Names that are none of a log are passed over: half-written files of other engines, compacted entries,
 * checksums. Source: the Delta protocol, "Checkpoint Naming Scheme".
 */

/** A checkpoint as a listing shows it. */
export interface ListedCheckpoint {
  readonly version: number
  /** Names in the folder; several for one that was written in parts. */
  readonly files: readonly string[]
}

/** The folder of a log. */
export interface LogListing {
  readonly entries: ReadonlySet<number>
  /** Newest version that has an entry; -1 without any. */
  readonly newest: number
  readonly checkpoint: ListedCheckpoint | null
}

const nameForm = /^(\d{20})\.(?:(json)|(checkpoint)\.parquet|checkpoint\.(\d{10})\.(\d{10})\.parquet)$/

/** Reads a listing; names in any order. */
export function parseListing(names: readonly string[]): LogListing {
  const entries = new Set<number>()
  const parts = new Map<string, string[]>()
  const whole: ListedCheckpoint[] = []
  for (const name of names) {
    const [, digits, json, classic, , count] = nameForm.exec(name) ?? []
    if (digits === undefined) continue
    const version = Number(digits)
    if (json !== undefined) entries.add(version)
    else if (classic !== undefined) whole.push({ version, files: [name] })
    else if (count !== undefined) {
      const files = [...(parts.get(digits + count) ?? []), name]
      parts.set(digits + count, files)
      if (files.length === Number(count)) whole.push({ version, files: files.sort() })
    }
  }
  let newest = -1
  for (const version of entries) if (version > newest) newest = version
  return { entries, newest, checkpoint: whole.sort((a, b) => a.version - b.version).at(-1) ?? null }
}

/** The first version of `(after, newest]` that has no entry; null when all have one. */
export function firstHole({ entries, newest }: LogListing, after: number): number | null {
  for (let version = after + 1; version <= newest; version++) if (!entries.has(version)) return version
  return null
}
