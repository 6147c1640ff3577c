import { afterAll, beforeAll, describe, test } from 'vitest'
import { doris } from '../../lib/adapters/doris/sink.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import type { RejectPolicy } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import { contractCases, type Implementation } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkFaultContract, sinkRefusalFaultContract } from '../../lib/testing/contracts/sink-faults.ts'
import { refusedValue, sinkRefusalContract } from '../../lib/testing/contracts/sink-refusals.ts'
import { contractLanes, type SinkControls, type SinkSubject } from '../../lib/testing/contracts/sink-subject.ts'
import { type DorisDouble, dorisDouble } from '../support/doris-double.ts'
import { duplicateModel } from '../support/doris-loads.ts'
import { contractRow, stagingControls } from '../support/table-contract.ts'

let double: DorisDouble
let tables = 0

beforeAll(async () => {
  double = await dorisDouble()
})
afterAll(() => double.stop())

const anything = () => true
const welcome = (value: unknown) => value !== refusedValue

const dorisSink = (format: 'json' | 'csv', onReject: RejectPolicy = 'park'): Implementation<SinkSubject> => ({
  name: `Doris, ${format}`,
  async fresh() {
    const table = `db.rows_${tables++}`
    double.createTable(
      table,
      duplicateModel({ k: anything, v: onReject === 'park' ? anything : welcome, ts: anything }),
    )
    const store = memoryStore()
    const spec = doris({
      connection: () => double.url,
      table,
      row: contractRow,
      lanes: contractLanes,
      format,
      onReject,
      columns: ['k', 'v', 'ts'],
    })
    const context = { pipeline: `p-${tables}`, incarnation: 'unused', stage: 'test', directory: null, store }
    const staging = stagingControls(store)
    const controls: SinkControls = {
      visible: async () =>
        double.rows(table).map(({ k, v, ts }) => ({ key: k as string, value: v as string, timestampMs: Number(ts) })),
      backup: async () => {
        const restore = double.copyOf(table)
        return async () => restore()
      },
      async dropMarker(lane) {
        for await (const { name } of store.list(`markers/${context.pipeline}/rows/${lane}/`)) await store.delete([name])
      },
      async disturb(nth, when) {
        const end = double.cut(nth, when)
        return async () => end()
      },
      // What is staged lies in two places.
      async loseStaging(committable) {
        double.expirePrepared()
        await staging.loseStaging(committable)
      },
      async damageStaging(committable) {
        double.expirePrepared()
        await staging.damageStaging(committable)
      },
    }
    const over = (other: Store) => spec.open('rows', { ...context, store: other })
    return { open: async () => ({ sink: await over(store), store, controls, over }) }
  },
  differences: Object.fromEntries(
    [
      'refuses when it was restored to an earlier epoch',
      'heals when the missing epochs are promoted again in order',
      'heals when it lost one epoch alone, in one lane of several',
      'never takes absent staging for success when it lost epochs',
    ].map((name) => [name, 'the marker lies in the store, so a restored table is not noticed']),
  ),
})

describe.each([dorisSink('json', 'dead-letter'), dorisSink('csv', 'dead-letter')])(
  'a sink with dead letters: $name',
  ({ name, fresh }) => {
    const differences = {
      'records what it refuses again after a restore under another id':
        'the marker lies in the store, so a restored table is not noticed',
    }
    test.each(contractCases(sinkRefusalContract, { name, fresh, differences }))('$name', ({ run }) => run())
  },
)

const markerInStore = {
  'gives a lane one base marker when any exchange with the sink is cut': 'its marker lies in the store',
}

describe('a Doris sink with dead letters under faults', () => {
  const { name, fresh } = dorisSink('json', 'dead-letter')
  const cases = [
    ...contractCases(sinkFaultContract, { name, fresh, differences: markerInStore }),
    ...contractCases(sinkRefusalFaultContract, { name, fresh }).map(({ name: rule, run }) => ({
      name: `with refused rows: ${rule}`,
      run,
    })),
  ]
  test.each(cases)('$name', ({ run }) => run())
})

describe('a Doris sink with dead letters', () => {
  const { name, fresh, differences } = dorisSink('csv', 'dead-letter')
  test.each(contractCases(sinkContract, { name, fresh, differences }))('$name', ({ run }) => run())
})

describe('a Doris sink under faults', () => {
  const { name, fresh } = dorisSink('json')
  test.each(contractCases(sinkFaultContract, { name, fresh, differences: markerInStore }))('$name', ({ run }) => run())
})

describe.each([dorisSink('json'), dorisSink('csv')])('a sink: $name', (implementation) => {
  test.each(contractCases(sinkContract, implementation))('$name', ({ run }) => run())
})
