import { describe, expect, test } from 'vitest'
import type { promote } from '../../lib/epoch/promote.ts'
import { verify } from '../../lib/epoch/verify.ts'
import { deadLetter, json, nullable, pipeline, text, topic } from '../../lib/index.ts'
import type { RejectedRecord } from '../../lib/model/manifest.ts'
import type { LaneInput } from '../../lib/model/steps.ts'
import type { Sabotage } from '../../lib/testing/actor.ts'
import { everyFault, exhaust, memory, memoryStore } from '../../lib/testing/index.ts'
import { type Sample, sinkMix } from './pipelines.ts'
import { brokenIn, type Stage, stage } from './stage.ts'

const refusing = { id: 'out', lanes: 1, kind: 'refusing' } as const
const weak = { id: 'out', lanes: 1, kind: 'weak' } as const
const settings = { epoch: { spanMax: 2, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 1_000_000 } }
const faults = everyFault.filter(({ fault }) => ['crash-after', 'reply-lost', 'zombie'].includes(fault))

/** A sink that refuses the values that say so. */
const picky = (onReject: 'park' | 'dead-letter', withLetters = true): Sample => {
  const letters = topic('letters', { key: nullable(text()), value: json<RejectedRecord>() })
  const table = memory({
    ...{ key: nullable(text()), value: text(), onReject },
    refuses: ({ value }) =>
      value?.toString().startsWith('bad') ? { code: '23514', column: 'n', reason: 'too bad' } : null,
  })
  return {
    pipeline: pipeline('picky', withLetters ? { onError: deadLetter('letters', letters) } : {})
      .from(topic('lines', { key: nullable(text()), value: text() }))
      .to('table', table),
    input: { lines: [] },
  }
}

const lettersOf = (at: Stage) => at.values('letters').map((value) => JSON.parse(value) as RejectedRecord)
const eventsOf = (at: Stage, event: string) => at.events.filter((one) => one.event === event)

describe('a row that the sink refuses', () => {
  test('becomes a dead letter of the next epoch, which is planned without new input', async () => {
    const at = stage(picky('dead-letter'), { partitions: 1 })
    at.append('lines', 0, 'good', 'bad one', 'fine')
    await at.run()
    expect(at.values('table')).toEqual(['good', 'fine'])
    expect((await at.head()).committed.epoch).toBe(2)
    const [letter, ...others] = lettersOf(at)
    expect(others).toEqual([])
    const { incarnation } = await at.head()
    expect(letter).toMatchObject({
      operator: 'table',
      error: { name: '23514', message: 'too bad' },
      value: Buffer.from('bad one').toString('base64'),
      refused: { sink: 'table', lane: 0, incarnation, epoch: 1, row: 1, code: '23514', column: 'n' },
    })
    const [row] = at.world.sinks.get('letters')!.visible()
    const headers = Object.fromEntries(row!.headers.map(([name, value]) => [name, value?.toString()]))
    expect(headers).toEqual({
      'pawl-sink': 'table',
      'pawl-lane': '0',
      'pawl-incarnation': incarnation,
      'pawl-epoch': '1',
      'pawl-row': '1',
      'pawl-code': '23514',
      'pawl-column': 'n',
    })
    expect(at.world.sinks.get('table')!.refused(0)).toEqual([])
    expect(await faultsOf(at)).toEqual([])
    await at.settle()
  })

  test('parks the pipeline when that was chosen, and loses and repeats nothing once it may be carried', async () => {
    const at = stage(picky('park'), { partitions: 1 })
    at.world.sinks.get('table')!.refuses = (row) => (row.value?.toString() === 'bad' ? refusal : null)
    at.append('lines', 0, 'good', 'bad')
    await at.wake(2)
    expect(await at.parked()).toBe('ROWS_REFUSED')
    expect(at.values('table')).toEqual([])
    at.world.sinks.get('table')!.refuses = () => null
    at.deploy(picky('dead-letter').pipeline)
    await at.run()
    expect(at.values('table')).toEqual(['good', 'bad'])
  })

  test('is carried again, under the same place, when a restored sink refuses it again', async () => {
    const at = stage(picky('dead-letter'), { partitions: 1 })
    at.append('lines', 0, 'one')
    await at.run()
    const backup = at.world.sinks.get('table')!.snapshot()
    at.append('lines', 0, 'bad two')
    await at.run()
    at.world.sinks.get('table')!.restore(backup)
    at.world.restored = true
    at.append('lines', 0, 'three')
    await at.run()
    const places = lettersOf(at).map(({ refused }) => refused)
    expect(places).toHaveLength(2)
    expect(places[0]).toEqual(places[1])
    expect(at.values('table')).toEqual(['one', 'three'])
    await at.settle()
  })

  test('is not lost when the pipeline has no sink for dead letters any more: it parks until there is one', async () => {
    const at = stage(picky('dead-letter'), { partitions: 1 })
    downWhenAsked(at)
    at.append('lines', 0, 'good', 'bad')
    await at.wake()
    at.world.sinks.get('table')!.down = false
    at.deploy(picky('park', false).pipeline)
    await at.wake(2)
    expect(await at.parked()).toBe('DEAD_LETTERS_STRANDED')
    at.deploy(picky('dead-letter').pipeline)
    await at.run()
    expect(lettersOf(at)).toHaveLength(1)
    await at.settle()
  })

  test('waits while the sink cannot be asked, and does not hold back what comes in', async () => {
    const at = stage(picky('dead-letter'), { partitions: 1 })
    const table = at.world.sinks.get('table')!
    at.append('lines', 0, 'bad')
    downWhenAsked(at)
    await at.wake()
    expect((await at.head()).refusing).toEqual([{ sink: 'table', lane: 0 }])
    table.down = false
    await at.run()
    expect(lettersOf(at)).toHaveLength(1)
    await at.settle()
  })
})

/** The table stops to answer when it is first asked for what it refused. */
function downWhenAsked(at: Stage): void {
  const table = at.world.sinks.get('table')!
  const open = table.open.bind(table)
  let asks = 0
  table.open = (store) => ({
    ...open(store),
    refused: async (lane, max) => {
      if (asks++ === 0) table.down = true
      return open(store).refused!(lane, max)
    },
  })
}

/** What an audit of the chain finds. */
async function faultsOf({ world }: Stage) {
  const { ledger, store, sinks, compiled } = world
  const readMarker = async ({ sink, lane }: { sink: string; lane: number }) => {
    const found = sinks.get(sink)!
    return found.marked ? found.marker(lane) : 'unmarked'
  }
  return (await verify({ ledger, store, pipeline: compiled.topology.pipeline, readMarker })).faults
}

const refusal = { code: '23514', column: 'n', reason: 'too bad' }

describe('at most once', () => {
  const once = sinkMix('at-most-once', [weak], 1)

  test('names what it gave up: in an event, in the head, then in the next manifest', async () => {
    const at = stage(once, { partitions: 1, script: (actor) => dyingIn(actor, 'once-sink.promote') })
    at.append('lines', 0, 'one')
    await at.run()
    expect(at.values('out')).toEqual(['one'])
    const given = { epoch: 1, sink: 'out', lane: 0, rows: 1, code: 'UNKNOWN_RESULT' }
    expect(eventsOf(at, 'unconfirmed')).toMatchObject([{ event: 'unconfirmed', pipeline: 'sink-mix', ...given }])
    expect((await at.head()).unconfirmed).toEqual({ rows: 1, recent: [given] })
    at.append('lines', 0, 'two')
    await at.run()
    expect((await at.head()).unconfirmed).toEqual({ rows: 1, recent: [] })
    expect(await faultsOf(at)).toEqual([])
    const chain = await at.settle()
    expect(chain.manifests[2]!.unconfirmed).toEqual([given])
  })

  test('plans a failed attempt again: nothing of it was visible, so nothing is lost', async () => {
    const at = stage(once, { partitions: 1, script: (actor) => dyingIn(actor, 'ledger.swap', 3) })
    at.append('lines', 0, 'one', 'two', 'three')
    await at.run()
    expect(at.values('out')).toEqual(['one', 'two', 'three'])
    expect(eventsOf(at, 'unconfirmed')).toEqual([])
    await at.settle()
  })

  test('waits for a sink that says it was not touched, and loses nothing in an outage', async () => {
    const at = stage(once, { partitions: 1 })
    at.append('lines', 0, 'one')
    await at.run()
    at.world.sinks.get('out')!.down = true
    at.append('lines', 0, 'two')
    await at.wake(5)
    expect(await at.parked()).toBe('SINK_UNAVAILABLE')
    at.world.sinks.get('out')!.down = false
    await at.run()
    expect(at.values('out')).toEqual(['one', 'two'])
    expect((await at.head()).unconfirmed).toBeUndefined()
    await at.settle()
  })
})

/** Process 0 dies after its nth call of this kind. */
function dyingIn(actor: number, call: string, nth = 1) {
  let seen = 0
  return ({ port, method }: { port: string; method: string }) => {
    if (actor !== 0 || `${port}.${method}` !== call || ++seen !== nth) return null
    return { fault: 'crash-after' } as const
  }
}

/** One rule of the modes left out, and what the simulation says of it. */
const proofs: readonly [name: string, sample: Sample, sabotage: Sabotage, breaks: RegExp][] = [
  [
    'a promotion that is not begun in the head',
    sinkMix('at-most-once', [weak], 3),
    { steps: (job) => ({ PromoteLane: async (input) => untold(job, input) }) },
    /tries epoch \d once, not 2 times/,
  ],
  [
    'an epoch that is given up without a word',
    sinkMix('at-most-once', [weak], 3),
    { steps: () => ({ PromoteLane: async ({ sink, lane }: LaneInput) => ({ promoted: `${sink}/${lane}` }) }) },
    /at least 1 times, not 0/,
  ],
  [
    'a sink that forgets what it refused before it is carried',
    sinkMix('exactly-once', [refusing], 6),
    sinkThat((sink) => ({ refused: async () => [], forget: sink.forget })),
    /becomes a dead letter/,
  ],
  [
    'a sink that never forgets what was carried',
    sinkMix('exactly-once', [refusing], 12),
    sinkThat(() => ({ forget: async () => undefined })),
    /is carried once/,
  ],
]

/** Promotes without telling the head. */
async function untold(job: Parameters<typeof promote>[0], input: LaneInput) {
  const sink = await job.place.sink('', input.sink, job.compiled.sinks[input.sink]!, '')
  const item = await job.place.ledger.history(input.run.pipeline, input.epoch)
  const manifest = JSON.parse((await job.place.store.read(item!.manifest.name))!.toString())
  const committable = manifest.committables.find((one: { sink: string }) => one.sink === input.sink)
  const permit = { incarnation: manifest.incarnation, epoch: input.epoch, manifest: item!.manifest }
  await sink.promote(committable, permit as never)
  return { promoted: `${input.sink}/${input.lane}` }
}

type OpenedSink = ReturnType<NonNullable<ReturnType<Stage['world']['sinks']['get']>>['open']>

function sinkThat(change: (sink: OpenedSink) => Partial<OpenedSink>): Sabotage {
  return {
    sink(world, id, store) {
      if (id !== 'out') return null
      const sink = world.sinks.get(id)!.open(store ?? memoryStore())
      return { ...sink, ...change(sink) }
    },
  }
}

describe('the simulation catches', () => {
  test.each(proofs)('%s', async (_name, sample, sabotage, breaks) => {
    const { pipeline: one, input } = sample
    const run = () => exhaust(one, { input, settings, partitions: 1, sabotage, faults, rings: 12 })
    expect(await brokenIn(run)).toMatch(breaks)
  })
})
