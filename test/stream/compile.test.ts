import { describe, expect, test } from 'vitest'
import {
  bytes,
  compile,
  deadLetter,
  json,
  nullable,
  PawlError,
  type PipelineOptions,
  pipeline,
  text,
  topic,
  tumbling,
} from '../../lib/index.ts'
import type { RejectedRecord } from '../../lib/model/manifest.ts'
import type { CustomSinkSpec } from '../../lib/ports/spec.ts'
import { memory } from '../../lib/testing/index.ts'

const lines = topic('lines', { value: text() })
const out = topic('out', { value: text() })
const counts = topic('counts', { key: text(), value: json<number>() })

/** The list of mistakes that compile reports. */
function mistakesOf(value: unknown): string[] {
  try {
    compile(value)
  } catch (error) {
    expect(error).toBeInstanceOf(PawlError)
    expect(error).toMatchObject({ code: 'PIPELINE_INVALID', kind: 'Invalid' })
    return String((error as PawlError).details.mistakes).split('\n')
  }
  return []
}

const simple = (options: PipelineOptions = {}) => pipeline('p', options).from(lines).to('out', out)

describe('a compiled pipeline', () => {
  const compiled = compile(
    pipeline('word-count')
      .from(lines, { maxOutOfOrdernessMs: 5 })
      .flatMap((line) => line.split(' '))
      .map('trim', (word) => word.trim())
      .map((word) => word.toLowerCase())
      .keyBy((word) => word)
      .window(tumbling({ sizeMs: 1000, allowedLatenessMs: 10 }))
      .count('counts', { version: 2 })
      .sideOutput('late', (late) => late.to('late-words', topic('late', { key: text(), value: text() })))
      .to('out', counts),
  )

  test('is frozen JSON with readable ids, stages and inputs', () => {
    expect(compiled.topology).toEqual(JSON.parse(JSON.stringify(compiled.topology)))
    expect(Object.isFrozen(compiled.topology.nodes[0])).toBe(true)
    expect(compiled.topology.nodes.map(({ id, kind, stage, inputs }) => [id, kind, stage, inputs])).toEqual([
      ['lines', 'source', 0, []],
      ['flat-map-1', 'flatMap', 0, ['lines']],
      ['trim', 'map', 0, ['flat-map-1']],
      ['map-1', 'map', 0, ['trim']],
      ['key-by-1', 'keyBy', 0, ['map-1']],
      ['counts', 'window', 1, ['key-by-1']],
      ['late', 'late', 1, ['counts']],
      ['late-words', 'sink', 1, ['late']],
      ['out', 'sink', 1, ['counts']],
    ])
    expect(compiled.topology.stages).toBe(2)
  })

  test('names its sources, sinks and state', () => {
    expect(compiled.topology.nodes[0]).toMatchObject({
      topic: 'lines',
      serde: ['nullable(bytes)', 'text'],
      maxOutOfOrdernessMs: 5,
      idleAfterMs: 30_000,
    })
    expect(Object.keys(compiled.sinks)).toEqual(['late-words', 'out'])
    expect(compiled.stateful).toEqual([{ operator: 'counts', stage: 1, stateKind: 'window', stateVersion: 2 }])
    expect([compiled.sinksOf(0), compiled.sinksOf(1), compiled.sinksOf('fused')]).toEqual([
      [],
      ['late-words', 'out'],
      ['late-words', 'out'],
    ])
  })

  test('touches nothing that the user gave', () => {
    const restart = { strategy: 'fixed-delay' as const, attempts: 1, delayMs: 0 }
    compile(simple({ restart }))
    expect(Object.isFrozen(restart)).toBe(false)
  })

  test('lists the dead-letter sink in every stage', () => {
    const dead = compile(
      pipeline('p', { onError: deadLetter('dead', topic('dead', { value: json<unknown>() })) })
        .from(lines)
        .keyBy((line) => line)
        .count('c')
        .to('out', counts),
    )
    expect(dead.topology.deadLetterSink).toBe('dead')
    expect(dead.settings.onError).toBe('dead-letter')
    expect([dead.sinksOf(0), dead.sinksOf(1)]).toEqual([['dead'], ['out', 'dead']])
  })
})

describe('the build', () => {
  const buildOf = (fn: (line: string) => string, options: PipelineOptions = {}) =>
    compile(pipeline('p', options).from(lines).map(fn).to('out', out)).build

  test('changes with the text of a function and with settings that change results', () => {
    const upper = buildOf((line) => line.toUpperCase())
    expect(upper).toMatch(/^[0-9a-f]{64}$/)
    expect(buildOf((line) => line.toUpperCase())).toBe(upper)
    expect(buildOf((line) => line.toLowerCase())).not.toBe(upper)
    expect(buildOf((line) => line.toUpperCase(), { onError: 'skip' })).not.toBe(upper)
  })

  test('stays when only the pace changes', () => {
    const fn = (line: string) => line
    expect(buildOf(fn, { checkpoint: { intervalMs: 7 } })).toBe(buildOf(fn))
  })
})

function twice() {
  const head = pipeline('p')
  return head.from(lines).merge(head.from(lines)).to('out', out)
}

function negativeLateness() {
  const window = tumbling({ sizeMs: 1, allowedLatenessMs: -1 })
  return simple()
    .keyBy((line) => line)
    .window(window)
    .count('c')
    .to('counts', counts)
}

describe('mistakes', () => {
  test('a sound pipeline has none', () => {
    expect(mistakesOf(simple())).toEqual([])
  })

  test('are all reported at once', () => {
    const mistakes = mistakesOf(
      pipeline('Word Count', { shards: 200, keyGroups: 8, checkpoint: { timeoutMs: 90_000 } })
        .from(lines, { maxOutOfOrdernessMs: -1 })
        .map('lines', (line) => line)
        .keyBy((line) => line)
        .window(tumbling({ sizeMs: 0 }))
        .count('a_b')
        .to('out', counts),
    )
    expect(mistakes).toEqual([
      expect.stringContaining('pipeline id "Word Count"'),
      expect.stringContaining('id "lines" is used 2 times'),
      expect.stringContaining('id "a_b" must be'),
      'lines: maxOutOfOrdernessMs must be a whole number of at least 0, not -1',
      'a_b: window sizeMs must be a whole number of at least 1, not 0',
      'shards must be a whole number from 1 to 40, not 200',
      'shards (200) must not exceed keyGroups (8)',
      'checkpoint.timeoutMs (90000) must be below half of leaseMs (150000)',
    ])
  })

  test.each<[string, unknown, string]>([
    ['no source', pipeline('p'), 'there is no source'],
    ['no sink', pipeline('p').from(lines), 'there is no sink'],
    ['a branch that leads nowhere', simple().map((line) => line), 'map-1 leads nowhere: add .to'],
    ['a keyed stream without a fold', simple().keyBy((line) => line), 'key-by-1 leads nowhere: add an aggregate'],
    ['a branch of another pipeline value', simple().also(pipeline('q').from(lines)), 'another pipeline() value (q)'],
    ['an id of 61 characters', simple().to('x'.repeat(61), out), 'must be 1 to 60'],
    ['a topic name that is no id', pipeline('p').from(topic('My.Topic')).to('out', topic('o')), 'id "My.Topic"'],
    ['one sink id twice', simple().to('out', out), 'id "out" is used 2 times'],
    ['one topic read twice', twice(), 'id "lines" is used 2 times'],
    ['a negative lateness', negativeLateness(), 'c: allowedLatenessMs must be a whole number of at least 0, not -1'],
    ['too many lanes', simple().to('wide', topic('w', { value: text(), lanes: 40 })), '41 lanes together'],
    ['an impossible topic', simple().to('t', topic('a b', { value: text() })), 't: topic "a b" must be 1 to 249'],
    ['no lanes', simple().to('none', topic('w', { value: text(), lanes: 0 })), 'none: lanes must be'],
    [
      'a route without topics',
      simple().to('r', topic('w', { value: text(), route: { topics: [], choose: () => '' } })),
      'r: route lists no topic',
    ],
    [
      'an async function from JavaScript',
      simple()
        .map('late', (async () => 1) as never)
        .to('x', topic('x') as never),
      'late must be synchronous',
    ],
    [
      'no function from JavaScript',
      simple()
        .map('odd', 5 as never)
        .to('x', topic('x') as never),
      'odd must be a function, not number',
    ],
    ['an unknown restart strategy', simple({ restart: { strategy: 'often' } as never }), 'restart.strategy must be'],
    [
      'a timeout above the limit of a function',
      simple({ checkpoint: { timeoutMs: 10 ** 9 }, leaseMs: 10 ** 10 }),
      'checkpoint.timeoutMs must be',
    ],
    ['an epoch span above the limit', simple({ epoch: { spanMax: 10 ** 9 } }), 'epoch.spanMax must be'],
    ['a fraction', simple({ leaseMs: 300_000.5 }), 'leaseMs must be a whole number'],
    ['no number', simple({ checkpoint: { intervalMs: Number.NaN } }), 'checkpoint.intervalMs must be'],
  ])('%s', (_name, value, sentence) => {
    expect(mistakesOf(value)).toContainEqual(expect.stringContaining(sentence))
  })

  test('a sink weaker than exactly-once', () => {
    const weak: CustomSinkSpec<unknown, unknown> = {
      ...{ kind: 'sink', type: 'mail', guarantee: 'at-least-once', lanes: 1 },
      open: () => Promise.reject(new Error('never opened')),
    }
    const [mistake, ...others] = mistakesOf(simple().to('mail', weak))
    expect(mistake).toMatch(/^mail: a mail sink is at-least-once, the pipeline is exactly-once: take a sink that is/)
    expect(mistake).toContain("'at-least-once' (rows may come twice) or 'at-most-once'")
    expect(others).toEqual([])
    for (const guarantee of ['at-least-once', 'at-most-once'] as const)
      expect(mistakesOf(simple({ guarantee }).to('mail', weak))).toEqual([])
  })

  test('a guarantee that there is not, and refused rows that have nowhere to go', () => {
    const table = memory({ key: nullable(text()), value: text(), onReject: 'dead-letter' })
    const letters = memory<RejectedRecord, string | null>({
      key: nullable(text()),
      value: json(),
      onReject: 'dead-letter',
    })
    expect(mistakesOf(simple({ guarantee: 'twice' as never }))).toEqual([
      'guarantee must be exactly-once, at-least-once, at-most-once, not "twice"',
    ])
    const from = (options: PipelineOptions) =>
      pipeline('p', options).from(topic('in', { key: nullable(text()), value: text() }))
    expect(mistakesOf(from({}).to('table', table))).toEqual([
      "table: onReject 'dead-letter' needs a sink for them: set onError to deadLetter(id, sink)",
    ])
    expect(mistakesOf(from({ onError: deadLetter('letters', letters) }).to('table', table))).toEqual([
      'letters: the sink of the dead letters itself must park on what it refuses: leave out onReject',
    ])
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a promise of a stream', Promise.resolve(simple())],
    ['any other object', {}],
  ])('%s is no pipeline', (_name, value) => {
    expect(() => compile(value)).toThrow(expect.objectContaining({ code: 'PIPELINE_FILE_INVALID' }))
  })
})

test('every method returns a new value and touches nothing', () => {
  const stream = pipeline('p').from(topic('b', { value: bytes() }))
  const one = stream.to('one', topic('x', { value: bytes() }))
  const two = stream.to('two', topic('x', { value: bytes() }))
  expect(Object.keys(compile(one).sinks)).toEqual(['one'])
  expect(Object.keys(compile(two).sinks)).toEqual(['two'])
  expect(Object.isFrozen(stream)).toBe(true)
})

test('a stream of another copy of the package is a stream', () => {
  const stream = simple()
  const foreign = Object.fromEntries(
    Object.getOwnPropertySymbols(stream).map((brand) => [brand, stream[brand as never]]),
  )
  expect(compile(foreign).topology).toEqual(compile(stream).topology)
})
