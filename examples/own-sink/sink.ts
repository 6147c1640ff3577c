/**
 * A sink of one's own: a table of SQLite, exactly once, in about sixty lines.
 *
 * Rows wait in the store; a promote writes them and the marker in one transaction, and only if the marker is the one
 * that the epoch follows. docs/adapters.md walks through it; the test beside the others runs the contract on it.
 */
import { DatabaseSync } from 'node:sqlite'
import { PawlError } from 'pawl'
import { type CustomSinkSpec, jsonRows, jsonWriter, type Marker, markerAfter, sameMarker } from 'pawl/sink-kit'

type Row = [key: string | null, value: string | null, at: number]

/** Appends key, value and timestamp of each row. `textOf` makes text of a value; JSON by default. */
export function sqlite<V>(options: {
  readonly file: string
  readonly table: string
  readonly lanes?: number
  readonly textOf?: (value: V) => string | null
}): CustomSinkSpec<string | null, V> {
  const { file, table, lanes = 1, textOf = (value: V) => JSON.stringify(value) } = options
  return {
    kind: 'sink',
    type: 'sqlite',
    guarantee: 'exactly-once',
    lanes,
    async open(sink, { pipeline, store }) {
      const db = new DatabaseSync(file, { timeout: 5000 })
      db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE IF NOT EXISTS ${table} (key TEXT, value TEXT, at INTEGER);
        CREATE TABLE IF NOT EXISTS markers (lane TEXT PRIMARY KEY, incarnation TEXT, epoch INTEGER, hash TEXT)`)
      const insert = db.prepare(`INSERT INTO ${table} VALUES (?, ?, ?)`)
      const nameOf = (lane: number) => `${pipeline}/${sink}/${lane}`
      const select = db.prepare('SELECT incarnation, epoch, hash FROM markers WHERE lane = ?')
      const read = (lane: number): Marker | null => {
        const row = select.get(nameOf(lane)) as Marker | undefined
        return row === undefined ? null : { ...row }
      }
      const replace = db.prepare('INSERT OR REPLACE INTO markers VALUES (?, ?, ?, ?)')
      const drop = db.prepare('DELETE FROM markers WHERE lane = ?')

      /** Writes rows and marker if the lane shows `from`; answers with what it shows. */
      const move = (lane: number, from: Marker | null, to: Marker | null, rows: readonly Row[]): Marker | null => {
        try {
          db.exec('BEGIN IMMEDIATE')
          const found = read(lane)
          if (sameMarker(found, from)) {
            for (const row of rows) insert.run(...row)
            if (to === null) drop.run(nameOf(lane))
            else replace.run(nameOf(lane), to.incarnation, to.epoch, to.hash)
          }
          db.exec('COMMIT')
          return found
        } catch (error) {
          if (db.isTransaction) db.exec('ROLLBACK')
          throw new PawlError('SINK_UNAVAILABLE', `SQLite of sink ${sink}`, { sink }, error)
        }
      }
      return {
        target: `sqlite:${table}`,
        limits: { laneRowsMax: 1_000_000, laneBytesMax: 128 * 1024 * 1024 },
        stage: async (context) =>
          jsonWriter<V, string | null>(context, (value, key, at) => ({ key, row: [key, textOf(value), at] })),
        base: async (lane, marker) => move(lane, null, marker, []) ?? marker,
        async promote(committable, permit) {
          const rows: Row[] = []
          for await (const batch of jsonRows<Row>(store, committable)) for (const row of batch) rows.push(row)
          const found = move(committable.lane, committable.prev, markerAfter(committable, permit), rows)
          return sameMarker(found, committable.prev) ? { result: 'promoted' } : { result: 'refused', found }
        },
        marker: async (lane) => read(lane),
        async reassign(lane, from, to) {
          move(lane, from, to, [])
          return read(lane)
        },
        close: async () => db.close(),
      }
    },
  }
}
