import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import {
  contractCases,
  contractLanes,
  contractRowSpec,
  type Implementation,
  memoryStore,
  type SinkControls,
  type SinkSubject,
  sinkContract,
  sinkFaultContract,
  type VisibleRow,
} from 'pawl/testing'
import { describe, test } from 'vitest'
import { sqlite } from '../../examples/own-sink/sink.ts'
import type { Committable, Sink, Store } from '../../lib/sink-kit.ts'

const stagedNames = ({ parts }: Committable) => parts.flatMap(({ objects }) => objects.map(({ name }) => name))

function controlsOf(file: string, store: ReturnType<typeof memoryStore>): SinkControls {
  const query = (sql: string) => {
    const db = new DatabaseSync(file, { timeout: 5000 })
    const rows = db
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }))
    db.close()
    return rows
  }
  return {
    visible: async () => query('SELECT key, value, at AS timestampMs FROM rows') as unknown as VisibleRow[],
    async backup() {
      query('PRAGMA wal_checkpoint(TRUNCATE)')
      copyFileSync(file, `${file}.backup`)
      return async () => {
        const db = new DatabaseSync(file, { timeout: 5000 })
        db.exec(`ATTACH '${file}.backup' AS backup; BEGIN IMMEDIATE;
          DELETE FROM rows; INSERT INTO rows SELECT * FROM backup.rows;
          DELETE FROM markers; INSERT INTO markers SELECT * FROM backup.markers; COMMIT`)
        db.close()
      }
    },
    dropMarker: async (lane) => void query(`DELETE FROM markers WHERE lane = 'p/rows/${lane}'`),
    loseStaging: async (committable) => store.delete(stagedNames(committable)),
    damageStaging: async (committable) => store.damage(stagedNames(committable)[0]!),
  }
}

const ownSink: Implementation<SinkSubject> = {
  name: 'SQLite',
  async fresh() {
    const directory = mkdtempSync(join(tmpdir(), 'pawl-own-sink-'))
    const file = join(directory, 'rows.db')
    const store = memoryStore()
    const opened: Sink[] = []
    const spec = sqlite<unknown>({
      file,
      table: 'rows',
      lanes: contractLanes,
      textOf: (value) => contractRowSpec.value.encode(value) as string | null,
    })
    const over = async (other: Store) => {
      const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store: other }
      const sink = await spec.open('rows', context)
      opened.push(sink)
      return sink
    }
    const controls = controlsOf(file, store)
    return {
      open: async () => ({ sink: await over(store), store, controls, over }),
      async dispose() {
        for (const sink of opened) await sink.close()
        if (existsSync(directory)) rmSync(directory, { recursive: true })
      },
    }
  },
}

describe('the example of a sink of one’s own', () => {
  test.each(contractCases(sinkContract, ownSink))('$name', ({ run }) => run())
})

describe('the example of a sink of one’s own, under faults', () => {
  const noServer = 'it has no server'
  const differences = {
    'loses and repeats nothing when any exchange with the sink is cut': noServer,
    'gives a lane one base marker when any exchange with the sink is cut': noServer,
  }
  test.each(contractCases(sinkFaultContract, { ...ownSink, differences }))('$name', ({ run }) => run())
})
