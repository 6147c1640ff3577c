import { expect, test } from 'vitest'
import { memorySink } from '../../lib/adapters/memory/sink.ts'
import { type WriteAheadAnswer, writeAhead } from '../../lib/adapters/writeahead/sink.ts'
import { deadLetter, json, nullable, pipeline, text, topic } from '../../lib/index.ts'
import type { RejectedRecord } from '../../lib/model/manifest.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import { compile } from '../../lib/stream/compile.ts'
import { createDriver } from '../../lib/testing/drive.ts'
import type { Fault } from '../../lib/testing/fault.ts'
import { memory } from '../../lib/testing/index.ts'
import { rowSpecOf, World } from '../../lib/testing/world.ts'

const faults: readonly Fault[] = [
  ...([{ fault: 'crash-before' }, { fault: 'crash-after' }, { fault: 'reply-lost' }] as const),
  ...([
    { fault: 'repeated', answer: 'second' },
    { fault: 'late', calls: 7 },
    { fault: 'timeout', calls: 9 },
  ] as const),
  { fault: 'zombie', calls: 40 },
]
const input = Array.from({ length: 4 }, (_, n) => n)
const isBad = (n: number) => n % 2 === 1

/** What a function writes to: it remembers keys, and what it said. */
interface Target {
  readonly shown: number[]
  readonly answers: Map<string, WriteAheadAnswer>
}

function functionSink({ shown, answers }: Target, store: Store | null) {
  return writeAhead<number, string | null>({
    ...{ idempotent: true, onReject: 'dead-letter', batchRows: 2, key: nullable(text()) },
    async write(rows, { idempotencyKey }) {
      // The process may end before the effect, and after it.
      await store?.read('before')
      const known = answers.get(idempotencyKey)
      const refused = rows.flatMap(({ value }, row) => (isBad(value ?? 0) ? [{ row, reason: 'bad', code: '422' }] : []))
      if (known === undefined) {
        answers.set(idempotencyKey, { refused })
        shown.push(...rows.flatMap(({ value }) => (isBad(value ?? 0) ? [] : [value ?? 0])))
      }
      await store?.read('after')
      return known ?? { refused }
    },
  })
}

/** One run of the pipeline with a fault at one call of its first process. */
async function runOnce(planned: { readonly at: number; readonly fault: Fault } | null) {
  const target: Target = { shown: [], answers: new Map() }
  const letters = memory<RejectedRecord, string | null>({ key: nullable(text()), value: json() })
  const compiled = compile(
    pipeline('refusing', { onError: deadLetter('letters', letters) })
      .from(topic('in', { key: nullable(text()), value: text() }))
      .map('number', Number)
      .to('out', functionSink(target, null)),
  )
  const epoch = { spanMax: 2, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 1_000_000 }
  const checkpoint = { ...compiled.settings.checkpoint, intervalMs: 0 }
  const settings = { ...compiled.settings, epoch, checkpoint, leaseMs: 40_000 }
  const world = new World({ compiled: { ...compiled, settings }, seed: 3, partitions: () => 1 })
  // The marker is where the function cannot see it: in the store.
  world.sinks.set('out', memorySink({ id: 'out', spec: rowSpecOf(compiled, 'out'), marked: false }))
  const context = { pipeline: 'refusing', incarnation: 'i', stage: 'test', directory: null }
  let calls = 0
  const driver = createDriver({
    world,
    sabotage: {
      sink: (_, id, store) =>
        id === 'out' ? lazily(functionSink(target, store).open(id, { ...context, store })) : null,
    },
    mortal: true,
    script: (actor) =>
      function script({ index }) {
        if (actor === 0) calls = index + 1
        return actor === 0 && index === planned?.at ? planned.fault : null
      },
  })
  for (const n of input) void world.logs.get('in')!.append(0, [{ key: 'k', value: `${n}`, timestampMs: n }])
  await driver.untilDone({ rings: 40 })
  await driver.untilOver({ rings: 40 })
  const dead = world.sinks.get('letters')!.visible()
  const buried = dead.map(({ value }) => JSON.parse(value!.toString()) as RejectedRecord)
  return { calls, shown: target.shown, buried }
}

/** The sink is open only once it is called: the world opens sinks without waiting. */
function lazily(opening: Promise<Sink>): Sink {
  return {
    target: 'write-ahead:out',
    limits: { laneRowsMax: 1000, laneBytesMax: 1_000_000 },
    stage: async (...args) => (await opening).stage(...args),
    base: async (...args) => (await opening).base(...args),
    promote: async (...args) => (await opening).promote(...args),
    marker: async (...args) => (await opening).marker(...args),
    refused: async (...args) => (await (await opening).refused?.(...args)) ?? [],
    forget: async (...args) => (await opening).forget?.(...args),
    close: async () => (await opening).close(),
  }
}

test('each row that a function refuses is a dead letter once, and each other one is written once, whatever fails at any call', async () => {
  const { calls } = await runOnce(null)
  let runs = 0
  for (let at = 0; at < calls; at++) {
    for (const fault of faults) {
      const { shown, buried } = await runOnce({ at, fault })
      const where = `${JSON.stringify(fault)} at call ${at}`
      expect(shown, where).toEqual(input.filter((n) => !isBad(n)))
      const values = buried.map(({ value }) => Number(Buffer.from(value!, 'base64').toString()))
      expect(values, where).toEqual(input.filter(isBad))
      for (const { operator, refused } of buried) expect([operator, refused?.code], where).toEqual(['out', '422'])
      runs++
    }
  }
  process.stdout.write(`refusals in the store: ${calls} port calls × ${faults.length} faults = ${runs} runs\n`)
}, 240_000)
