import { describe, expect, test } from 'vitest'
import { stepCalls } from '../../lib/epoch/execute.ts'
import { PawlError } from '../../lib/index.ts'
import { limits } from '../../lib/model/limits.ts'
import type { CommitInput, StepOutput } from '../../lib/model/steps.ts'
import type { Sabotage } from '../../lib/testing/actor.ts'
import type { Fault } from '../../lib/testing/fault.ts'
import { wordCount } from '../simulation/pipelines.ts'
import { type Stage, stage } from '../simulation/stage.ts'

/** A stage with a fault at the first call of the first process that `matches`. */
function faulted(
  fault: Fault,
  matches: (port: string, method: string, nth: number) => boolean,
  sabotage?: Sabotage,
): Stage {
  const counts = new Map<string, number>()
  let struck = false
  return stage(wordCount(6, 2), {
    sabotage,
    script: (actor) => (call) => {
      if (actor !== 0 || struck) return null
      const nth = (counts.get(call.method) ?? 0) + 1
      counts.set(call.method, nth)
      struck = matches(call.port, call.method, nth)
      return struck ? fault : null
    },
  })
}

/** The swap that commits: it comes with a history item. */
const commits = (fault: Fault): Stage => {
  let strikes = 1
  const witness: Sabotage = {
    place: (place) => ({
      ...place,
      ledger: {
        ...place.ledger,
        async swap(expected, head, options) {
          if (options?.history?.epoch !== 1 || strikes-- <= 0) return place.ledger.swap(expected, head, options)
          if (fault.fault === 'reply-lost') await place.ledger.swap(expected, head, options)
          throw new PawlError('UNKNOWN_RESULT', 'the commit')
        },
      },
    }),
  }
  return stage(wordCount(6, 2), { sabotage: witness })
}

async function once(at: Stage): Promise<void> {
  at.arrive()
  await at.run()
  await at.settle()
}

describe('commit', () => {
  test('case 1: whose reply is lost has one effect; case 2: nothing of it is deleted', async () => {
    const at = commits({ fault: 'reply-lost' })
    await once(at)
    expect(at.events.filter(({ event }) => event === 'committed')).toHaveLength((await at.head()).committed.epoch)
    expect(at.events.some(({ event }) => event === 'aborted')).toBe(false)
  })

  test('case 5: that is unclear and was not made is made again', async () => {
    const at = commits({ fault: 'refused' })
    await once(at)
    expect(at.events.some(({ event }) => event === 'aborted')).toBe(false)
  })

  test('case 6: replayed by an old machine, eleven minutes or eleven epochs later, changes nothing', async () => {
    const inputs: CommitInput[] = []
    const recording: Sabotage = {
      steps: (job) => ({
        async Commit(input: CommitInput) {
          inputs.push(input)
          return stepCalls(job).Commit!(input as never)
        },
      }),
    }
    const at = stage(wordCount(12, 1), {
      sabotage: recording,
      settings: { epoch: { spanMax: 1, fuseSpanMax: 9, fuseMs: 0, convictAfter: 2 } },
    })
    at.arrive()
    await at.run()
    at.world.clock.advance(11 * 60_000)
    const before = await at.head()
    const { job } = at.driver.actors[0]!
    for (const input of inputs)
      await expect(stepCalls(job).Commit!(input as never)).rejects.toMatchObject({ name: 'Fenced' })
    expect(await at.head()).toEqual(before)
    await at.settle()
  })

  test('case 16: of two runs on one epoch, the one that was fenced is told so, and who holds the pipeline', async () => {
    const at = faulted({ fault: 'zombie', calls: 1e9 }, (_, method, nth) => method === 'promote' && nth === 1)
    at.arrive()
    await at.run()
    at.world.releaseAll()
    await at.settle()
    const ends = at.world.story.filter(({ actor, text }) => actor === 0 && text.startsWith('ends'))
    expect(ends).toHaveLength(1)
    expect(at.events.some((event) => event.event === 'taken-over' && event.generation === 2)).toBe(true)
  })
})

describe('an epoch', () => {
  test('case 10: whose preparation fails twice leaves nothing behind', async () => {
    for (const nth of [3, 4, 5, 6, 7]) {
      const at = faulted(
        { fault: 'crash-after' },
        (port, method, count) => port === 'store' && method === 'create' && count === nth,
      )
      await once(at)
    }
  })

  test('case 13, case 14: shows nothing before its commit, whatever another task of it does', async () => {
    const at = stage(wordCount(8, 2), {
      settings: { shards: 3, epoch: { spanMax: 20, fuseSpanMax: 0, fuseMs: 0, convictAfter: 100 } },
      script:
        (actor) =>
        ({ port, method }) => {
          if (method !== 'promote') return null
          expect(at.world.ledger.committed, `process ${actor} promotes on ${port} what is committed`).toBeGreaterThan(0)
          return null
        },
    })
    await once(at)
  })

  test('case 18: whose promotion dies after k of n lanes is promoted to its end, each lane once', async () => {
    for (const nth of [1, 2]) {
      for (const fault of ['crash-before', 'crash-after', 'reply-lost'] as const) {
        await once(faulted({ fault }, (_, method, count) => method === 'promote' && count === nth))
      }
    }
  })

  test('case 66: whose step lives past its timeout changes nothing in the attempt after it', async () => {
    for (let call = 20; call < 60; call++) {
      let index = -1
      const at = faulted({ fault: 'timeout', calls: 9 }, () => ++index === call)
      await once(at)
    }
  })
})

test('case 63: inputs and outputs of all steps stay small with two thousand partitions', async () => {
  const sizes = new Map<string, number>()
  const measure = (name: string, value: unknown) =>
    sizes.set(name, Math.max(sizes.get(name) ?? 0, JSON.stringify(value)?.length ?? 0))
  const measuring: Sabotage = {
    steps: (job) =>
      Object.fromEntries(
        Object.entries(stepCalls(job)).map(([name, step]) => [
          name,
          async (input: never) => {
            measure(name, input)
            const output = (await step(input)) as StepOutput
            measure(name, output)
            return output
          },
        ]),
      ),
  }
  const at = stage(wordCount(50, 2), {
    sabotage: measuring,
    partitions: 2000,
    settings: { shards: 8, epoch: { spanMax: 100, fuseSpanMax: 0, fuseMs: 0, convictAfter: 2 } },
  })
  at.arrive()
  await at.run()
  expect([...sizes.keys()].sort()).toEqual(['Commit', 'Finalize', 'OperateTask', 'Plan', 'Precommit', 'PromoteLane'])
  for (const [name, bytes] of sizes) {
    expect(bytes, name).toBeLessThan(limits.statePayloadBytesMax / 16)
  }
})
