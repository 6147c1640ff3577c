import { describe, test } from 'vitest'
import { contractCases, type Implementation } from '../../lib/testing/contracts/contract.ts'
import { sinkContract } from '../../lib/testing/contracts/sink.ts'
import { sinkFaultContract, sinkRefusalFaultContract } from '../../lib/testing/contracts/sink-faults.ts'
import { refusedValue, sinkRefusalContract } from '../../lib/testing/contracts/sink-refusals.ts'
import type { SinkSubject } from '../../lib/testing/contracts/sink-subject.ts'
import { file, memory, memoryPlace, writtenAhead } from '../support/sink-implementations.ts'

const refusing: Implementation<SinkSubject> = {
  name: 'memory',
  fresh: () =>
    memoryPlace({
      onReject: 'dead-letter',
      refuses: ({ value }) =>
        value?.toString() === refusedValue ? { code: '23514', column: 'v', reason: 'a constraint' } : null,
    }),
}

describe('a sink with dead letters: memory', () => {
  test.each(contractCases(sinkRefusalContract, refusing))('$name', ({ run }) => run())
})

const unnoticed = 'the marker lies in the store, so a restored target is not noticed'
const again = 'it is at-least-once: the batch under way comes again'

describe.each([true, false])(
  'a sink with dead letters: write-ahead, to a target that remembers keys: %s',
  (remembers) => {
    const { name, fresh } = writtenAhead(remembers, 'dead-letter')
    const differences = {
      'records what it refuses again after a restore under another id': unnoticed,
      ...(remembers
        ? {}
        : { 'records each refusal once when a promotion is repeated, or several promote at once': again }),
    }
    test.each(contractCases(sinkRefusalContract, { name, fresh, differences }))('$name', ({ run }) => run())
  },
)

const cutPromotion = { 'loses and repeats nothing when any exchange with the sink is cut': 'it has no server' }
const noServer = {
  ...cutPromotion,
  'gives a lane one base marker when any exchange with the sink is cut': 'it has no server',
}

describe.each([memory, writtenAhead(true)])('a sink under faults: $name', ({ name, fresh }) => {
  test.each(contractCases(sinkFaultContract, { name, fresh, differences: noServer }))('$name', ({ run }) => run())
})

describe('a sink with dead letters under faults: write-ahead to a target that remembers keys', () => {
  const { name, fresh } = writtenAhead(true, 'dead-letter')
  const cases = contractCases(sinkRefusalFaultContract, { name, fresh, differences: cutPromotion })
  test.each(cases)('$name', ({ run }) => run())
})

describe('a sink with dead letters under faults: memory', () => {
  const { name, fresh } = refusing
  const cases = contractCases(sinkRefusalFaultContract, { name, fresh, differences: cutPromotion })
  test.each(cases)('$name', ({ run }) => run())
})

// The exchanges that are cut are the calls of its disk.
describe('a sink under faults: files', () => {
  const onDisk = 'its rows wait on its own disk, and it calls no store'
  const differences = {
    'loses and repeats nothing when its process dies at any call of the store': onDisk,
    'loses and repeats nothing when any answer of the store is lost': onDisk,
  }
  // Each call of the disk twice, with an epoch of its own that is synced to it.
  test.each(contractCases(sinkFaultContract, { ...file, differences }))('$name', ({ run }) => run(), 60_000)
})

describe('a sink under faults: write-ahead', () => {
  const differences = {
    ...noServer,
    'loses and repeats nothing when its process dies at any call of the store': again,
    'loses and repeats nothing when any answer of the store is lost': again,
  }
  const { name, fresh } = writtenAhead(false)
  test.each(contractCases(sinkFaultContract, { name, fresh, differences }))('$name', ({ run }) => run())
})

describe.each([memory, file, writtenAhead(false), writtenAhead(true)])('a sink: $name', (implementation) => {
  test.each(contractCases(sinkContract, implementation))('$name', ({ run }) => run())
})
