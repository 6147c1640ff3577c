import { describe, expect, test } from 'vitest'
import {
  deadLetter,
  json,
  nullable,
  type PipelineOptions,
  pipeline,
  type Settings,
  text,
  topic,
} from '../../lib/index.ts'
import type { RejectedRecord } from '../../lib/model/manifest.ts'
import type { Sample } from './pipelines.ts'
import { type Stage, type StageOptions, stage } from './stage.ts'

const letters = topic('letters', { key: nullable(text()), value: json<RejectedRecord>() })
const patient = { intervalMs: 0, minPauseMs: 0, timeoutMs: 600_000, tolerableFailures: 0 }
const quick = { strategy: 'fixed-delay', attempts: 1000, delayMs: 10 } as const

/** Lines through one operator that a test may let throw, or kill the process. */
const lines = (check: (value: string) => string, options: PipelineOptions = {}): Sample => ({
  pipeline: pipeline('failing', options)
    .from(topic('lines', { key: nullable(text()), value: text() }))
    .map('check', check)
    .to('out', topic('out', { key: nullable(text()), value: text() })),
  input: { lines: [] },
})

const settings = (more: Partial<Settings> = {}): StageOptions => ({
  settings: {
    epoch: { spanMax: 64, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 2 },
    checkpoint: patient,
    restart: quick,
    ...more,
  },
  partitions: 1,
})

const wakeUntilParked = async (at: Stage, times: number) => {
  for (let i = 0; i < times && (await at.parked()) === null && !(await at.done()); i++) await at.wake()
}

describe('a record that kills the process without a word', () => {
  const killing = (options: PipelineOptions, span: number, poison: number) => {
    let at: Stage
    const check = (value: string) => {
      if (value === 'poison') at.driver.actors.at(-1)!.gate.kill()
      return value
    }
    at = stage(lines(check, options), settings({ onError: 'onError' in options ? 'dead-letter' : 'fail' }))
    at.append('lines', 0, ...Array.from({ length: span }, (_, i) => (i === poison ? 'poison' : `line ${i}`)))
    return at
  }

  test.each([0, 21, 40, 63])('case 68: is convicted by bisection and dead-lettered, at %i of 64', async (poison) => {
    const at = killing({ onError: deadLetter('letters', letters) }, 64, poison)
    await at.run(60)
    const deaths = at.events.filter(({ event }) => event === 'taken-over').length
    expect(at.values('letters').map((value) => JSON.parse(value).offset)).toEqual([`${poison}`])
    expect(at.values('out')).toHaveLength(63)
    // Twice to notice, once for each halving that still holds it, twice for the conviction; halves that pass double again.
    expect(deaths).toBeLessThanOrEqual(2 * (Math.log2(64) + 2) + 2)
    await at.settle()
  })

  test('parks the pipeline where records may not be rejected, naming topic, partition and offset', async () => {
    const at = killing({}, 64, 40)
    await wakeUntilParked(at, 60)
    const { parked } = await at.head()
    expect(parked?.code).toBe('EPOCH_CRASHED')
    expect(parked?.message).toContain('lines/0 offset 40')
    expect(at.values('out').length).toBeLessThanOrEqual(40)
  })
})

describe('an operator that throws', () => {
  test('at random is repeated until it passes; each result is visible once', async () => {
    let calls = 0
    const at = stage(
      lines((value) => {
        if (++calls % 17 === 0) throw new Error('by chance')
        return value
      }),
      settings({ epoch: { spanMax: 8, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 5 } }),
    )
    at.append('lines', 0, ...Array.from({ length: 60 }, (_, i) => `line ${i}`))
    await at.run(60)
    expect([...at.values('out')].sort()).toEqual(Array.from({ length: 60 }, (_, i) => `line ${i}`).sort())
    expect(at.events.some(({ event }) => event === 'aborted')).toBe(true)
  })

  test('on the same record again parks, naming operator and record; another build goes on', async () => {
    const refusing = (value: string) => {
      if (value === 'bad') throw new RangeError('bad is refused')
      return value
    }
    const at = stage(lines(refusing), settings())
    at.append('lines', 0, 'good', 'bad', 'good')
    await wakeUntilParked(at, 6)
    const { parked, failures } = await at.head()
    expect(parked).toMatchObject({ kind: 'failure', code: 'OPERATOR_FAILED', retryAtMs: null })
    expect(failures.last).toMatchObject({ operator: 'check', record: { source: 'lines', partition: 0, offset: '1' } })
    await at.wake(3)
    expect(await at.parked()).toBe('OPERATOR_FAILED')
    at.deploy(lines((value) => value.toUpperCase()).pipeline)
    await at.run()
    expect(at.values('out')).toEqual(['GOOD', 'BAD', 'GOOD'])
  })

  test('parks until a person resumes it, when that is what was mended', async () => {
    let broken = true
    let resume = false
    const at = stage(
      lines((value) => {
        if (broken) throw new Error('the service behind it is down')
        return value
      }),
      { ...settings(), resume: () => resume },
    )
    at.append('lines', 0, 'one')
    await wakeUntilParked(at, 6)
    broken = false
    await at.wake(2)
    expect(at.values('out')).toEqual([])
    resume = true
    await at.run()
    expect(at.values('out')).toEqual(['one'])
    await at.settle()
  })
})

describe('an epoch that takes too long', () => {
  test('case 65: is halved, not repeated, until it fits', async () => {
    let at: Stage
    const check = (value: string) => {
      at.world.clock.advance(1000)
      return value
    }
    at = stage(lines(check), settings({ checkpoint: { ...patient, timeoutMs: 40_000 } }))
    at.append('lines', 0, ...Array.from({ length: 250 }, (_, i) => `line ${i}`))
    await at.run(60)
    const opened = at.events.flatMap((event) => (event.event === 'opened' ? [event.span] : []))
    const aborted = at.events.filter((event) => event.event === 'aborted')
    for (const abort of aborted) expect(abort).toMatchObject({ code: 'EPOCH_TIMEOUT' })
    expect(opened.length).toBeGreaterThan(1)
    expect(at.values('out')).toHaveLength(250)
  })
})

describe('restart strategies', () => {
  const failing = async (more: Partial<Settings>, wakes: number) => {
    const at = stage(
      lines(() => {
        throw new Error('always')
      }),
      settings({ epoch: { spanMax: 64, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 1_000_000 }, ...more }),
    )
    at.append('lines', 0, 'one')
    const startedAtMs = at.world.clock.nowMs()
    await wakeUntilParked(at, wakes)
    const aborts = at.events.filter(({ event }) => event === 'aborted').length
    return { aborts, parked: await at.parked(), elapsedMs: at.world.clock.nowMs() - startedAtMs }
  }

  test('none parks at the first failure', async () => {
    expect(await failing({ restart: { strategy: 'none' } }, 3)).toMatchObject({ aborts: 1, parked: 'OPERATOR_FAILED' })
  })

  test('fixed delay parks after its attempts', async () => {
    const restart = { strategy: 'fixed-delay', attempts: 3, delayMs: 500 } as const
    expect(await failing({ restart }, 6)).toMatchObject({ aborts: 4, parked: 'OPERATOR_FAILED' })
  })

  test('exponential delay waits longer each time, up to its longest, and parks after its attempts', async () => {
    const restart = { strategy: 'exponential-delay', initialMs: 100, maxMs: 1000, multiplier: 2, attempts: 6 } as const
    const { aborts, parked, elapsedMs } = await failing({ restart }, 9)
    expect({ aborts, parked }).toEqual({ aborts: 7, parked: 'OPERATOR_FAILED' })
    expect(elapsedMs).toBeGreaterThanOrEqual(100 + 200 + 400 + 800 + 1000 + 1000)
  })

  test('failure rate parks when too many failures fall into its interval', async () => {
    const restart = { strategy: 'failure-rate', failures: 4, intervalMs: 10_000, delayMs: 100 } as const
    expect(await failing({ restart }, 9)).toMatchObject({ aborts: 5, parked: 'OPERATOR_FAILED' })
  })

  test('tolerable failures are repeated at once before the strategy is asked', async () => {
    const checkpoint = { ...patient, tolerableFailures: 3 }
    expect(await failing({ restart: { strategy: 'none' }, checkpoint }, 9)).toMatchObject({ aborts: 4 })
  })
})

test('case 33: lost offsets stop the pipeline by default; the policy to skip leaves a record of them', async () => {
  const skipping: Sample = {
    pipeline: pipeline('skipping')
      .from(topic('lines', { key: nullable(text()), value: text(), onLostOffsets: 'skip' }))
      .to('out', topic('out', { key: nullable(text()), value: text() })),
    input: { lines: [] },
  }
  const at = stage(skipping, settings())
  at.append('lines', 0, 'a', 'b')
  await at.run()
  at.append('lines', 0, 'c', 'd', 'e')
  at.world.logs.get('lines')!.truncateBefore(0, 4n)
  await at.run()
  const head = await at.head()
  const manifest = at.world.manifests.get(head.committed.manifest.sha256)!
  expect(manifest.lost).toEqual([{ source: 'lines', partition: 0, start: '2', end: '4' }])
  expect(at.values('out')).toEqual(['a', 'b', 'e'])
})
