// Loaded now, and not from a disk that fails.
import 'hyparquet-writer'
import { expect, onTestFinished, test as plain } from 'vitest'
import { laneAppId } from '../../lib/adapters/delta/marker-txns.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { delta } from '../../lib/delta.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkFaultContract } from '../../lib/testing/contracts/sink-faults.ts'
import {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
} from '../../lib/testing/contracts/sink-subject.ts'
import { awsTest, type EmulatorClientOptions } from '../support/aws.ts'
import { backup, bucketTable, diskTable, dropTransactions, type SeenTable, tableRows } from '../support/delta-table.ts'
import { disturbDisk } from '../support/failing-disk.ts'
import { throughProxy } from '../support/fault-proxy.ts'
import { stagingControls } from '../support/table-contract.ts'

type Disturb = Pick<SinkControls, 'disturb'>

async function freshPlace(seen: SeenTable, more: Disturb, client?: EmulatorClientOptions) {
  const store = memoryStore()
  const spec = delta<unknown, unknown>({
    table: seen.table,
    columns: { k: 'string', v: 'string', ts: 'long' },
    row: (value, key, timestampMs) => ({ k: key, v: contractRowSpec.value.encode(value), ts: timestampMs }),
    lanes: contractLanes,
    ...(client === undefined ? {} : { s3: { ...client, forcePathStyle: true } }),
  })
  const opened: Sink[] = []
  const controls: SinkControls = {
    async visible() {
      const shown = (text: unknown) => (text === null ? null : String(text))
      const rows = await tableRows(seen)
      return rows.map(({ k, v, ts }) => ({ key: shown(k), value: shown(v), timestampMs: Number(ts) }))
    },
    backup: () => backup(seen),
    dropMarker: (lane) => dropTransactions(seen, laneAppId({ stage: 'test', pipeline: 'p', sink: 'rows', lane })),
    ...stagingControls(store),
    ...more,
  }
  const over = async (other: Store) => {
    const context = { pipeline: 'p', incarnation: 'unused', stage: 'test', directory: null, store: other }
    const sink = await spec.open('rows', context)
    opened.push(sink)
    return sink
  }
  return {
    async open(): Promise<SinkSubject> {
      return { sink: await over(store), store, controls, over }
    },
    async dispose() {
      for (const sink of opened) await sink.close()
    },
  }
}

// The exchanges that are cut are the calls of its disk.
const onDisk = {
  name: 'Delta on disk',
  fresh: () => freshPlace(tableForTest(diskTable()), { disturb: disturbDisk }),
}

function tableForTest<T extends SeenTable>(seen: T): T {
  onTestFinished(seen.dispose)
  return seen
}

for (const { name, run } of [...contractCases(sinkContract, onDisk), ...contractCases(sinkFaultContract, onDisk)]) {
  plain(`a Delta sink on disk: ${name}`, async () => {
    await expect(run()).resolves.toBeUndefined()
  })
}

let client: EmulatorClientOptions
const inBucket = {
  name: 'Delta in a bucket',
  fresh: async () => freshPlace(tableForTest(await bucketTable(client)), {}, client),
}
const disturbed = {
  name: 'Delta in a bucket',
  fresh: () =>
    throughProxy(client, async (through, more) => freshPlace(tableForTest(await bucketTable(client)), more, through)),
}

for (const { name, run } of [
  ...contractCases(sinkContract, inBucket),
  ...contractCases(sinkFaultContract, disturbed),
]) {
  awsTest(`a Delta sink in a bucket: ${name}`, async ({ emulator }) => {
    client = emulator.client
    await expect(run()).resolves.toBeUndefined()
  })
}
