import { describe } from 'vitest'
import { s3Store } from '../../lib/adapters/s3/store.ts'
import { createSegmentLog } from '../../lib/adapters/segments/log.ts'
import { contractCases, type Implementation } from '../../lib/testing/contracts/contract.ts'
import { logContract } from '../../lib/testing/contracts/log.ts'
import type { LogSubject } from '../../lib/testing/contracts/log-subject.ts'
import { awsTest, sharedEmulator } from '../support/aws.ts'
import { freshBucket } from '../support/aws-places.ts'
import { segmentDifferences, segmentRandom, segmentSubject } from '../support/segment-log.ts'

const segmentsInS3: Implementation<LogSubject> = {
  name: 'segments in S3',
  async fresh() {
    const emulator = await sharedEmulator()
    const store = s3Store({ ...emulator.client, bucket: await freshBucket(emulator), forcePathStyle: true })
    await createSegmentLog(store, { topic: 'lines', partitions: 3, random: segmentRandom })
    return { open: () => segmentSubject(store, 0n), dispose: () => store.close() }
  },
  differences: segmentDifferences,
}

describe('a log: segments in S3', () => {
  for (const { name, run } of contractCases(logContract, segmentsInS3)) awsTest(name, async ({ emulator: _ }) => run())
})
