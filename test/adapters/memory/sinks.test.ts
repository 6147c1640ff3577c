import { describe, expect, test } from 'vitest'
import { consoleSink } from '../../../lib/adapters/memory/console-sink.ts'
import { memorySink } from '../../../lib/adapters/memory/sink.ts'
import { memory } from '../../../lib/adapters/memory/spec.ts'
import { memoryStore } from '../../../lib/adapters/memory/store.ts'
import { json, nullable, text } from '../../../lib/model/serde.ts'
import type { Sink } from '../../../lib/ports/sink.ts'
import { contractRowSpec, SinkDriver } from '../../../lib/testing/contracts/sink-subject.ts'

const store = memoryStore()
const context = { pipeline: 'p', incarnation: 'i', stage: 'test', directory: null, store }
const unused = () => Promise.reject(new Error('no control'))
const controls = { visible: unused, backup: unused, dropMarker: unused, loseStaging: unused, damageStaging: unused }
const driverOf = (sink: Sink) => new SinkDriver({ sink, store, controls })

describe('memory()', () => {
  test('shows decoded rows, and keeps them while the pipeline is opened again', async () => {
    const spec = memory({ value: nullable(json<{ n: number }>()) })
    const driver = driverOf(await spec.open('out', context))
    await driver.register()
    const writer = await driver.sink.stage(driver.context(1))
    writer.add('k', { n: 1 }, 5, 0)
    writer.add(null, null, 6, 1)
    for (const committable of await driver.commitParts(1, await writer.seal())) await driver.promote(committable)
    await driver.sink.close()
    expect(await (await spec.open('out', context)).marker(1)).toEqual(driver.markerOf(1))
    expect(spec.entries()).toContainEqual({ key: 'k', value: { n: 1 }, timestampMs: 5 })
    expect(spec.entries()).toContainEqual({ key: null, value: null, timestampMs: 6 })
    expect(spec.rows().map(({ epoch, target }) => [epoch, target])).toEqual([
      [1, 'out'],
      [1, 'out'],
    ])
  })

  test('keeps sinks of other ids apart', async () => {
    const spec = memory({ value: text() })
    const driver = driverOf(await spec.open('one', context))
    await driver.register()
    expect(await (await spec.open('two', context)).marker(0)).toBeNull()
  })
})

describe('a memory sink', () => {
  test('is away while it is down, and has lost nothing when it is back', async () => {
    const sink = memorySink({ id: 'rows', spec: contractRowSpec })
    const driver = driverOf(sink.open(store))
    await driver.register()
    const [committable] = await driver.commit(1, [{ value: 'a' }])
    sink.down = true
    await expect(driver.promote(committable!)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    await expect(driver.sink.marker(0)).rejects.toMatchObject({ code: 'SINK_UNAVAILABLE' })
    sink.down = false
    expect(await driver.promote(committable!)).toEqual({ result: 'promoted' })
    expect(sink.visible(0)).toHaveLength(1)
  })

  test('keeps headers and routed targets with the rows', async () => {
    const spec = {
      ...contractRowSpec,
      route: { topics: ['a', 'b'], choose: (value: unknown) => value as string },
      headers: (value: unknown) =>
        [
          ['of', Buffer.from(value as string)],
          ['none', null],
        ] as const,
    }
    const sink = memorySink({ id: 'rows', spec })
    const driver = driverOf(sink.open(store))
    await driver.register()
    await driver.run(1, [{ value: 'a' }, { value: 'b' }])
    expect(sink.visible().map(({ target }) => target)).toEqual(['a', 'b'])
    expect(sink.visible()[1]!.headers).toEqual([
      ['of', Buffer.from('b')],
      ['none', null],
    ])
    await expect(driver.stage(2, [{ value: 'c' }])).rejects.toMatchObject({ code: 'ENCODE_FAILED' })
  })
})

describe('consoleSink()', () => {
  test('prints what was promoted, and nothing before', async () => {
    const lines: string[] = []
    const spec = consoleSink({ value: nullable(text()), print: (line) => lines.push(line) })
    expect(spec.guarantee).toBe('at-least-once')
    const driver = driverOf(await spec.open('out', context))
    await driver.register()
    const committables = await driver.commit(1, [{ key: 'k', value: 'v' }])
    expect(lines).toEqual([])
    for (const committable of committables) await driver.promote(committable)
    expect(lines).toEqual(['k\tv'])
  })

  test('prints a tombstone as null, and a row without key alone', async () => {
    const lines: string[] = []
    const spec = consoleSink({ value: nullable(text()), print: (line) => lines.push(line) })
    const driver = driverOf(await spec.open('out', context))
    await driver.register()
    await driver.run(1, [{ value: 'alone' }, { value: null }])
    expect(lines).toEqual(['alone', 'null'])
  })
})
