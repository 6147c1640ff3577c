import { describe, expect, test } from 'vitest'
import type { Asked, Calls } from '../../lib/testing/counted.ts'
import { countEpochCalls, type EpochShape } from '../../lib/testing/epoch-calls.ts'

const plain: EpochShape = {
  sources: 1,
  partitions: 1,
  stateful: 0,
  lanes: [1],
  shards: 1,
  split: false,
  intervalMs: 1000,
  backlog: true,
}

const sum = (calls: Calls, ...asked: Asked[]) =>
  Object.values(calls).reduce((all, own) => all + asked.reduce((one, name) => one + (own[name] ?? 0), 0), 0)

describe('what an epoch asks for', () => {
  test('is ten transitions, seven invocations and four objects for one task, one lane and no state', async () => {
    const { epoch } = await countEpochCalls(plain)
    expect({
      transitions: sum(epoch, 'transition'),
      invocations: sum(epoch, 'invocation') - (epoch.trigger?.invocation ?? 0),
      objects: sum(epoch, 'PutObject'),
      commits: epoch.commit?.TransactWriteItems,
      tenthOfACollection: epoch.finalize?.ListObjects,
    }).toEqual({ transitions: 10, invocations: 6, objects: 4, commits: 1, tenthOfACollection: 0.1 })
  })

  test('grows with lanes, tasks and state, by what each of them needs', async () => {
    const [one, lanes, state, split] = await Promise.all([
      countEpochCalls(plain),
      countEpochCalls({ ...plain, lanes: [1, 2] }),
      countEpochCalls({ ...plain, stateful: 1 }),
      countEpochCalls({ ...plain, stateful: 1, shards: 3, partitions: 3, split: true }),
    ])
    expect(sum(lanes.epoch, 'transition') - sum(one.epoch, 'transition')).toBe(2)
    expect(lanes.epoch.promote?.invocation).toBe(3)
    expect(sum(state.epoch, 'PutObject') - sum(one.epoch, 'PutObject')).toBe(1)
    // Two stages of three tasks each, with the Map and the choice between them.
    expect(split.epoch.operate?.invocation).toBe(6)
    expect(sum(split.epoch, 'transition') - sum(state.epoch, 'transition')).toBe(8)
  })

  test('has a wait in it where the next epoch must wait for its interval', async () => {
    const [backlog, trickle] = [await countEpochCalls(plain), await countEpochCalls({ ...plain, backlog: false })]
    expect(sum(trickle.epoch, 'transition') - sum(backlog.epoch, 'transition')).toBe(3)
    const slow = await countEpochCalls({ ...plain, backlog: false, intervalMs: 60_000 })
    expect(sum(slow.epoch, 'transition')).toBeGreaterThan(sum(trickle.epoch, 'transition'))
  })

  test('is apart from what a run, an event of a mapping and a tick at rest take', async () => {
    const { run, event, tick } = await countEpochCalls(plain)
    expect([run.machine?.execution, run.trigger?.invocation, sum(run, 'PutObject')]).toEqual([1, 1, 0])
    expect(event).toEqual({ trigger: expect.objectContaining({ invocation: 1, UpdateItem: 1 }) })
    expect([sum(tick, 'invocation'), sum(tick, 'PutItem', 'UpdateItem', 'PutObject', 'TransactWriteItems')]).toEqual([
      1, 0,
    ])
  })

  test('counts a conditional write of two items as a transaction, twice as dear', async () => {
    const { epoch } = await countEpochCalls(plain)
    const { TransactWriteItems = 0, writeUnit = 0 } = epoch.commit ?? {}
    expect(TransactWriteItems).toBe(1)
    expect(writeUnit).toBeGreaterThanOrEqual(4)
    expect(writeUnit % 2).toBe(0)
  })
})
