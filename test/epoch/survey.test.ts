import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { create } from '../../lib/epoch/create.ts'
import { readManifest } from '../../lib/epoch/job.ts'
import { survey } from '../../lib/epoch/survey.ts'
import { rangeSpan } from '../../lib/model/offsets.ts'
import { workbench } from './support.ts'

async function surveyed(lags: readonly number[], spanMax: number, inOrder: boolean) {
  const at = workbench({ partitions: lags.length })
  await create(at.job, at.run)
  for (const [partition, lag] of lags.entries()) at.append(partition, ...Array.from({ length: lag }, () => 'x'))
  const parent = await readManifest(at.job, (await at.head()).committed.manifest)
  const found = await survey(at.job, parent, spanMax, inOrder)
  return { ...found, spans: found.ranges.map((range) => Number(rangeSpan(range))) }
}

describe('a survey', () => {
  test('takes equal shares, and gives the others what one partition leaves', async () => {
    expect((await surveyed([10, 10, 10], 9, false)).spans).toEqual([3, 3, 3])
    expect((await surveyed([1, 0, 100], 50, false)).spans).toEqual([1, 0, 49])
    expect((await surveyed([5, 5], 3, false)).spans).toEqual([2, 1])
  })

  test('takes the first records first while a bisection is under way', async () => {
    expect((await surveyed([3, 5, 7], 6, true)).spans).toEqual([3, 3, 0])
    expect((await surveyed([0, 1, 9], 1, true)).spans).toEqual([0, 1, 0])
  })

  test('takes all it may and no more, from what is there, and says what is left', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(40), { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 100 }),
        fc.boolean(),
        async (lags, spanMax, inOrder) => {
          const { spans, span, lag, ranges } = await surveyed(lags, spanMax, inOrder)
          const total = lags.reduce((sum, one) => sum + one, 0)
          expect(span).toBe(Math.min(total, spanMax))
          expect(spans.reduce((sum, one) => sum + one, 0)).toBe(span)
          for (const [i, taken] of spans.entries()) {
            expect(taken).toBeLessThanOrEqual(lags[i]!)
            expect(ranges[i]!.caughtUp).toBe(taken === lags[i])
            expect(lag[i]!.records).toBe(`${lags[i]}`)
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  test('refuses a topic that was created again, shrank, or lost what comes next', async () => {
    const outcome = async (disturb: (log: ReturnType<typeof logOf>) => void) => {
      const at = workbench({ partitions: 1 })
      at.append(0, 'a', 'b', 'c')
      await create(at.job, at.run)
      const genesis = await readManifest(at.job, (await at.head()).committed.manifest)
      const parent = { ...genesis, progress: genesis.progress.map((one) => ({ ...one, end: '2' })) }
      disturb(logOf(at))
      return survey(at.job, parent, 10, false).then(
        () => 'fine',
        (error: { code: string }) => error.code,
      )
    }
    const logOf = (at: ReturnType<typeof workbench>) => at.world.logs.get('lines')!
    expect(await outcome(() => {})).toBe('fine')
    expect(await outcome((log) => log.recreate())).toBe('TOPIC_RECREATED')
    expect(await outcome((log) => log.truncateBefore(0, 3n))).toBe('LOG_OFFSET_LOST')
    expect(await outcome((log) => log.hold(0, 1n))).toBe('LOG_SHRUNK')
    expect(await outcome((log) => log.remove())).toBe('TOPIC_MISSING')
  })
})
