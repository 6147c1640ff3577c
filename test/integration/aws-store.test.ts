import { describe } from 'vitest'
import { s3Store } from '../../lib/adapters/s3/store.ts'
import type { Store } from '../../lib/ports/store.ts'
import { contractCases, type Implementation } from '../../lib/testing/contracts/contract.ts'
import { storeContract } from '../../lib/testing/contracts/store.ts'
import { awsTest, type Emulator, sharedEmulator } from '../support/aws.ts'
import { freshBucket } from '../support/aws-places.ts'

/** A bucket for each check, or a prefix within it. */
function s3(name: string, prefix: string | undefined): Implementation<Store> {
  return {
    name,
    async fresh() {
      const emulator: Emulator = await sharedEmulator()
      const bucket = await freshBucket(emulator)
      const opened: Store[] = []
      return {
        async open() {
          const store = s3Store({ ...emulator.client, bucket, prefix, forcePathStyle: true })
          opened.push(store)
          return store
        },
        async dispose() {
          for (const store of opened) await store.close()
        },
      }
    },
  }
}

describe.each([s3('bucket', undefined), s3('prefix', 'environments/one/')])(
  'case 69: S3 keeps the contract of memory and files, $name',
  (implementation) => {
    for (const { name, run } of contractCases(storeContract, implementation)) {
      awsTest(name, async ({ emulator: _ }) => run())
    }
  },
)
