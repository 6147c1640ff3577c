import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import { fileStore } from '../../lib/adapters/file/store.ts'
import { memoryLog } from '../../lib/adapters/memory/log.ts'
import { memoryStore } from '../../lib/adapters/memory/store.ts'
import { createSegmentLog } from '../../lib/adapters/segments/log.ts'
import { contractCases, type Implementation } from '../../lib/testing/contracts/contract.ts'
import { logContract } from '../../lib/testing/contracts/log.ts'
import type { LogControls, LogSubject } from '../../lib/testing/contracts/log-subject.ts'
import { intakeDifferences, intakeSubject } from '../support/intake.ts'
import { segmentRandom as random, segmentDifferences, segmentSubject } from '../support/segment-log.ts'

const beyondDoubles = 9_007_199_254_740_993n

const memory = (name: string, baseOffset: bigint): Implementation<LogSubject> => ({
  name,
  async fresh() {
    const log = memoryLog({ topic: 'lines', partitions: 3, baseOffset, batchRecordsMax: 7 })
    const controls: LogControls = {
      hole: async (partition, offsets) => {
        if (offsets % 2) log.skip(partition, BigInt(offsets))
        else log.appendAborted(partition, Array(offsets - 1).fill({ key: null, value: 'aborted', timestampMs: 0 }))
      },
      loseBefore: async (partition, offset) => log.truncateBefore(partition, offset),
      recreate: async () => log.recreate(),
      remove: async () => log.remove(),
      grow: async (partitions) => log.grow(partitions),
    }
    return { open: async () => ({ log, controls }) }
  },
})

const segmentsInMemory = (name: string, baseOffset: bigint): Implementation<LogSubject> => ({
  name,
  async fresh() {
    const store = memoryStore()
    await createSegmentLog(store, { topic: 'lines', partitions: 3, random, baseOffset })
    return { open: () => segmentSubject(store, baseOffset) }
  },
  differences: segmentDifferences,
})

const segmentsInFiles: Implementation<LogSubject> = {
  name: 'segments in files',
  async fresh() {
    const directory = await mkdtemp(join(tmpdir(), 'pawl-log-'))
    const store = fileStore(directory)
    await createSegmentLog(store, { topic: 'lines', partitions: 3, random })
    return {
      open: () => segmentSubject(store, 0n),
      async dispose() {
        await store.close()
        await rm(directory, { recursive: true })
      },
    }
  },
  differences: segmentDifferences,
}

const intake = (name: string, baseOffset: bigint): Implementation<LogSubject> => ({
  name,
  async fresh() {
    const store = memoryStore()
    const broker = memoryLog({ topic: 'lines', partitions: 3, baseOffset })
    return { open: () => intakeSubject(store, broker) }
  },
  differences: intakeDifferences,
})

const implementations = [
  memory('memory', 0n),
  memory('memory beyond 2^53', beyondDoubles),
  segmentsInMemory('segments in memory', 0n),
  segmentsInMemory('segments beyond 2^53', beyondDoubles),
  segmentsInFiles,
  intake('intake of events', 0n),
  intake('intake beyond 2^53', beyondDoubles),
]

describe.each(implementations)('a log: $name', (implementation) => {
  test.each(contractCases(logContract, implementation))('$name', ({ run }) => run())
})
