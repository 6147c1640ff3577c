import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { files } from '../../../lib/adapters/file/files.ts'
import { openFileSink } from '../../../lib/adapters/file/sink.ts'
import { memoryStore } from '../../../lib/adapters/memory/store.ts'
import type { Committable } from '../../../lib/model/manifest.ts'
import { bytes, json, nullable, type Serde, text } from '../../../lib/model/serde.ts'
import type { StageWriter } from '../../../lib/ports/sink.ts'
import { contractRowSpec, SinkDriver } from '../../../lib/testing/contracts/sink-subject.ts'
import { type DiskFailure, withFailingDisk } from '../../support/failing-disk.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'pawl-files-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const root = () => join(directory, 'rows')
const visible = () => readdirSync(root()).filter((name) => name.endsWith('.jsonl'))
const contentOf = (name: string) => readFileSync(join(root(), name), 'utf8')
const visibleName = '000000000001-0-a1b2c3d4.jsonl'

/** A driver of a sink whose controls are not used. */
function driverOf(): SinkDriver {
  const sink = openFileSink({ sink: 'rows', directory, within: null, spec: contractRowSpec })
  const unused = () => Promise.reject(new Error('no control'))
  const controls = { visible: unused, backup: unused, dropMarker: unused, loseStaging: unused, damageStaging: unused }
  return new SinkDriver({ sink, store: memoryStore(), controls })
}

async function committed(values: readonly string[] = ['a', 'b']): Promise<[SinkDriver, Committable]> {
  const driver = driverOf()
  await driver.register()
  const [committable] = await driver.commit(1, ...values.map((value) => [{ value, partition: 0 }]))
  return [driver, committable!]
}

describe('publishing', () => {
  /** A reader that takes away all that it sees; answers with what it took. */
  const take = (taken: string[]) => {
    for (const name of visible()) {
      taken.push(`${name} ${contentOf(name)}`)
      renameSync(join(root(), name), join(directory, `taken-${taken.length}`))
    }
  }

  test.each(['before', 'after'] as const)(
    'shows the epoch once, whichever call it dies %s, to any reader',
    async (when) => {
      const moments: number[] = []
      for (const readerTakes of ['never', 'after the crash', 'after each'] as const) {
        for (let at = 0; ; at++) {
          rmSync(root(), { recursive: true, force: true })
          const [driver, committable] = await committed()
          const taken: string[] = []
          const outcome = await withFailingDisk({ at, when }, () => driver.promote(committable))
          if (readerTakes !== 'never') take(taken)
          // The next process may die at the same place.
          await withFailingDisk({ at, when }, () => driverOf().promote(committable))
          if (readerTakes === 'after each') take(taken)
          const { result } = await driverOf().promote(committable)
          take(taken)
          expect(taken, `died ${when} call ${at}; the reader takes ${readerTakes}`).toHaveLength(1)
          expect(taken[0]).toContain('"value":"a"')
          expect(await driver.sink.marker(0)).toEqual(driver.markerOf(1))
          await driver.run(2, [{ value: 'next' }])
          expect(readdirSync(join(root(), '.staged'))).toEqual([])
          expect(readdirSync(join(root(), '.marker', '0'))).toEqual(['000000000002'])
          if (outcome === 'done') {
            expect(result).toBe('refused')
            moments.push(at)
            break
          }
        }
      }
      expect(Math.min(...moments)).toBeGreaterThan(15)
    },
  )

  test.each(['before', 'after'] as const)('stages and assembles again after dying %s any call', async (when) => {
    for (let at = 0; ; at++) {
      rmSync(root(), { recursive: true, force: true })
      const driver = driverOf()
      await driver.register()
      const rows = ['a', 'b'].map((value) => [{ value, partition: 0 }])
      const outcome = await withFailingDisk({ at, when }, async () => {
        await driver.commitParts(1, (await Promise.all(rows.map((task) => driver.stage(1, task)))).flat())
      })
      driver.markers.set(0, driver.markerOf(0))
      const [committable] = await driver.commit(1, ...rows)
      expect(await driver.promote(committable!)).toEqual({ result: 'promoted' })
      expect(visible().map(contentOf)).toEqual([expect.stringMatching(/"a".*\n.*"b".*\n$/)])
      expect(readdirSync(join(root(), '.staged'))).toEqual([])
      if (outcome === 'done') return
    }
  })

  test('never replaces a file that it did not write', async () => {
    const [driver, committable] = await committed()
    writeFileSync(join(root(), visibleName), 'mine')
    await expect(driver.promote(committable)).rejects.toMatchObject({ code: 'FILE_FOREIGN', kind: 'Corrupt' })
    expect(contentOf(visibleName)).toBe('mine')
    rmSync(join(root(), visibleName))
    expect(await driver.promote(committable)).toEqual({ result: 'promoted' })
  })

  test('takes a copy of the staged file for the file itself', async () => {
    const [driver, committable] = await committed(['a'])
    const [staged] = readdirSync(join(root(), '.staged'))
    writeFileSync(join(root(), visibleName), readFileSync(join(root(), '.staged', staged!)))
    expect(await driver.promote(committable)).toEqual({ result: 'promoted' })
    expect(visible()).toEqual([visibleName])
    expect(readdirSync(join(root(), '.staged'))).toEqual([])
  })

  test('heals from a backup that holds the staged file', async () => {
    const driver = driverOf()
    await driver.register()
    const [first] = await driver.commit(1, [{ value: 'a' }])
    const [second] = await driver.commit(2, [{ value: 'b' }])
    for (const committable of [first!, second!]) {
      expect(await driver.promote(committable, { healing: true })).toEqual({ result: 'promoted' })
    }
    expect(visible()).toHaveLength(2)
  })

  test('promotes into the target that the committable names, wherever the sink is now', async () => {
    const [driver, committable] = await committed()
    const moved = openFileSink({
      sink: 'rows',
      directory: join(directory, 'elsewhere'),
      within: null,
      spec: contractRowSpec,
    })
    expect(moved.target).not.toBe(committable.target)
    expect(await driver.promote(committable, { sink: moved })).toEqual({ result: 'promoted' })
    expect(visible()).toEqual([visibleName])
  })

  test('publishes into the place where it is now, when the place was moved with its files', async () => {
    const place = join(directory, 'before')
    const open = (within: string) => openFileSink({ sink: 'rows', directory: within, within, spec: contractRowSpec })
    const before = new SinkDriver({ ...driverOf().subject, sink: open(place) })
    await before.register()
    const [committable] = await before.commit(1, [{ value: 'a' }])
    cpSync(place, join(directory, 'after'), { recursive: true })
    expect(await before.promote(committable!, { sink: open(join(directory, 'after')) })).toEqual({ result: 'promoted' })
    expect(readdirSync(join(directory, 'after', 'rows'))).toContain(visibleName)
    expect(readdirSync(join(place, 'rows'))).not.toContain(visibleName)
  })

  test('sweeps what attempts that failed have left, and nothing of later epochs or other lanes', async () => {
    const [driver, committable] = await committed(['a'])
    await driver.stage(1, [{ value: 'failed' }])
    const later = await driver.commit(2, [{ value: 'later' }])
    const other = await driver.stage(1, [{ value: 'other', partition: 1 }])
    await driver.promote(committable)
    const left = readdirSync(join(root(), '.staged')).sort()
    const expected = [...later.flatMap(({ parts }) => parts), ...other]
    expect(left).toEqual(expected.map(({ handle }) => (handle as { file: string }).file).sort())
  })
})

describe('staging', () => {
  const ownWriter = async (spec: Parameters<typeof openFileSink>[0]['spec']): Promise<[SinkDriver, StageWriter]> => {
    const driver = driverOf()
    await driver.register()
    return [driver, await openFileSink({ sink: 'rows', directory, within: null, spec }).stage(driver.context(1))]
  }
  const shown = async (driver: SinkDriver, writer: StageWriter) => {
    for (const committable of await driver.commitParts(1, await writer.seal())) await driver.promote(committable)
    return visible().map(contentOf).join('')
  }
  const serde = <T>(of: Serde<T>) => of as Serde<unknown>
  const plain = { topic: 'rows', route: null, headers: null }

  test('writes JSON as JSON, text as text, bytes as base64', async () => {
    const [driver, writer] = await ownWriter({ ...plain, key: serde(bytes()), value: serde(nullable(json())) })
    writer.add(Buffer.from([1, 2, 255]), { count: 3, note: 'a\nb' }, 17, 0)
    writer.add(null, null, 18, 2)
    const rows = (await shown(driver, writer))
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
    expect(rows).toContainEqual({ key: 'AQL/', value: { count: 3, note: 'a\nb' }, timestamp: 17 })
    expect(rows).toContainEqual({ key: null, value: null, timestamp: 18 })
  })

  test('writes topic and headers where the spec has them', async () => {
    const spec = {
      ...plain,
      key: serde(text()),
      value: serde(text()),
      route: { topics: ['even', 'odd'], choose: (value: unknown) => value as string },
      headers: () =>
        [
          ['h', Buffer.from('x')],
          ['none', null],
        ] as const,
    }
    const [driver, writer] = await ownWriter(spec)
    writer.add(null, 'odd', 1, 0)
    expect(() => writer.add(null, 'neither', 1, 0)).toThrow('ENCODE_FAILED')
    expect(JSON.parse(await shown(driver, writer))).toEqual({
      key: null,
      value: 'odd',
      topic: 'odd',
      timestamp: 1,
      headers: [
        ['h', 'eA=='],
        ['none', null],
      ],
    })
  })

  test.each<DiskFailure>([
    { at: 0, when: 'before', only: 'writeSync', once: true, errno: 'ENOSPC' },
    { at: 0, when: 'after', only: 'writeSync', once: true, errno: 'ENOSPC' },
  ])('says that the disk is full, and writes each row once when it is not any more ($when)', async (failure) => {
    const driver = driverOf()
    await driver.register()
    const writer = await driver.sink.stage(driver.context(1))
    writer.add(null, 'a', 1, 0)
    await withFailingDisk(failure, () => expect(writer.flush()).rejects.toMatchObject({ code: 'DISK_FULL' }))
    writer.add(null, 'b', 1, 0)
    expect((await shown(driver, writer)).match(/"value":"."/g)).toEqual(['"value":"a"', '"value":"b"'])
  })

  test('makes no file in the name of another epoch when a part has vanished', async () => {
    const driver = driverOf()
    await driver.register()
    const parts = [...(await driver.stage(1, [{ value: 'a' }])), ...(await driver.stage(1, [{ value: 'b' }]))]
    await driver.sink.discard?.(parts.slice(1))
    await expect(driver.commitParts(1, parts)).rejects.toMatchObject({ code: 'OBJECT_MISSING' })
    await expect(driver.commitParts(1, parts.slice(1))).rejects.toMatchObject({ code: 'OBJECT_MISSING' })
  })
})

describe('files()', () => {
  const open = (place: string | null, options: { directory?: string } = {}) =>
    files({ value: json(), ...options }).open('rows', {
      pipeline: 'p',
      incarnation: 'i',
      stage: 'test',
      directory: place,
      store: memoryStore(),
    })

  test('writes below the place, or where it is told', async () => {
    expect((await open(directory)).target).toBe('files:./files/p/rows')
    expect((await open(directory, { directory: join(directory, 'out') })).target).toBe('files:./out/rows')
    expect((await open(`${directory}/place`, { directory })).target).toBe(`files:${join(directory, 'rows')}`)
    expect((await open(null, { directory })).target).toBe(`files:${join(directory, 'rows')}`)
    await expect(open(null)).rejects.toMatchObject({ code: 'PIPELINE_INVALID' })
  })

  test('says SINK_UNAVAILABLE where it may not write', async () => {
    mkdirSync(join(directory, 'taken'))
    writeFileSync(join(directory, 'taken', 'rows'), 'a file')
    const sink = await open(null, { directory: join(directory, 'taken') })
    await expect(sink.base(0, { incarnation: 'i', epoch: 0, hash: 'h' })).rejects.toMatchObject({
      code: 'SINK_UNAVAILABLE',
    })
  })
})
