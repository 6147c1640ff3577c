import { describe, expect, test } from 'vitest'
import { memorySink } from '../../lib/adapters/memory/sink.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { contractRowSpec, type SinkControls } from '../../lib/testing/contracts/sink-subject.ts'
import { type SinkSabotage, sabotagedSink } from '../../lib/testing/sabotage.ts'

/** Obligations that a sink with this sabotage does not keep. */
async function broken(sabotage: SinkSabotage | null): Promise<string[]> {
  const cases = contractCases(sinkContract, { name: `${sabotage}`, fresh: async () => place(sabotage) })
  const failed: string[] = []
  for (const { name, run } of cases.filter(({ name }) => !name.includes('200,000'))) {
    await run().catch(() => failed.push(name))
  }
  return failed
}

const textOf = (bytes: Buffer | null) => bytes?.toString() ?? null

function place(sabotage: SinkSabotage | null) {
  const store = memoryStore()
  const sink = memorySink({ id: 'rows', spec: contractRowSpec })
  const controls: SinkControls = {
    async visible() {
      const rows = sink.visible()
      return rows.map(({ key, value, timestampMs }) => ({ key: textOf(key), value: textOf(value), timestampMs }))
    },
    async backup() {
      const snapshot = sink.snapshot()
      return async () => sink.restore(snapshot)
    },
    dropMarker: async (lane) => sink.dropMarker(lane),
    async loseStaging({ parts }) {
      await store.delete(parts.flatMap(({ objects }) => objects.map(({ name }) => name)))
    },
    damageStaging: async ({ parts }) => store.damage(parts[0]!.objects[0]!.name),
  }
  const client = () => (sabotage === null ? sink.open(store) : sabotagedSink(sink, store, sabotage))
  return { open: async () => ({ sink: client(), store, controls }) }
}

describe('the sink contract', () => {
  test('finds nothing wrong with a sink that keeps the rules, made of the same parts', async () => {
    expect(await broken(null)).toEqual([])
  })

  test.each<[SinkSabotage, string]>([
    ['marker-outside', 'has one effect when several promote at once'],
    ['rows-then-marker', 'has one effect when several promote at once'],
    ['marker-ge', 'refuses when it was restored to an earlier epoch'],
    ['marker-ge', 'refuses an epoch whose predecessor is not promoted'],
    ['no-marker', 'case 1: changes nothing when a promotion is repeated'],
  ])('finds the sink with sabotage %s: it does not keep `%s`', async (sabotage, obligation) => {
    expect(await broken(sabotage)).toContain(obligation)
  })
})
