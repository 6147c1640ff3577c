/**
 * Opens the ledger's SQLite file: durable, of our kind, of a version that we know, undamaged.
 *
 * Write-ahead logging with one fsync a commit; a commit is visible to other processes only once it is durable.
 * Version 1. What SQLite does not see, rows carry a CRC-32 for.
 */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { PawlError } from '../../model/errors.ts'
import { diskError } from '../shared/disk-errors.ts'
import { makeDurableDirectory } from '../shared/durable-directory.ts'

/** Version of the tables below; grows with every change that an older Pawl would misread. */
export const schemaVersion = 1

/** `Pawl` in ASCII: tells a ledger from any other SQLite file. */
const applicationId = 0x5061776c

/** How long SQLite itself waits for a lock, blocking the thread; longer waits yield to the event loop. */
const lockWaitMs = 100

/** Larger files are checked as they are read; this many bytes are checked in some 0.1 s. */
const checkedBytesMax = 64 * 1024 * 1024

const schema = `
  CREATE TABLE heads (
    pipeline TEXT PRIMARY KEY, revision INTEGER NOT NULL, head TEXT NOT NULL, crc INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE history (
    pipeline TEXT NOT NULL, epoch INTEGER NOT NULL, item TEXT NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (pipeline, epoch)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE wakes (pipeline TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT;
  PRAGMA application_id = ${applicationId};
  PRAGMA user_version = ${schemaVersion};
`

/**
 * Opens or creates the ledger in `file`.
 *
 * Throws `LEDGER_TOO_NEW`, `LEDGER_DAMAGED`, errors of the file system as ours, and errors of SQLite as they are;
 * a busy one may be tried again.
 */
export function openDatabase(file: string): DatabaseSync {
  try {
    makeDurableDirectory(dirname(file))
  } catch (error) {
    throw diskError(error, 'open the ledger in', dirname(file), 'LEDGER_UNAVAILABLE')
  }
  const database = new DatabaseSync(file, { timeout: lockWaitMs })
  try {
    // The version comes first: a newer file is refused before anything in it is touched.
    const known = checkKind(database, file)
    // EXTRA is FULL with write-ahead logging, and also safe where the file system does not allow it.
    // The fullfsync pair matters on macOS, where fsync does not reach the disk.
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = EXTRA')
    database.exec('PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON')
    if (known) checkPages(database, file)
    else createTables(database, file)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function pragma(database: DatabaseSync, name: string): unknown {
  return Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]
}

/** True for a ledger, false for a file without tables. */
function checkKind(database: DatabaseSync, file: string): boolean {
  const version = Number(pragma(database, 'user_version'))
  const kind = Number(pragma(database, 'application_id'))
  const tables = Number(Object.values(database.prepare('SELECT count(*) FROM sqlite_schema').get()!)[0])
  if (tables === 0 && version === 0) return false
  if (kind !== applicationId) {
    throw new PawlError('LEDGER_DAMAGED', `${file} is the database of something else`, { file })
  }
  if (version > schemaVersion) {
    const fault = `${file} has version ${version}, this Pawl knows ${schemaVersion}`
    throw new PawlError('LEDGER_TOO_NEW', fault, { file, version, known: schemaVersion })
  }
  if (version < 1) throw new PawlError('LEDGER_DAMAGED', `${file} has version ${version}`, { file, version })
  return true
}

function checkPages(database: DatabaseSync, file: string): void {
  if (statSync(file).size > checkedBytesMax) return
  const answer = pragma(database, 'integrity_check(1)')
  if (answer !== 'ok') throw new PawlError('LEDGER_DAMAGED', `${file}: ${answer}`, { file })
}

/** Under the write lock, since several processes may find the same new file. */
function createTables(database: DatabaseSync, file: string): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    if (!checkKind(database, file)) database.exec(schema)
    database.exec('COMMIT')
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}
