import { describe, test } from 'vitest'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkSizeContractOf } from '../../lib/testing/contracts/sink-size.ts'
import { called, deltaOnDisk, file, manyRows, memory } from '../support/sink-sizes.ts'
import { dorisSize } from '../support/sink-sizes-servers.ts'

// Those with a server stand beside the rest of their contract; a million rows each are part of the soak.
describe.each([memory, file, called, deltaOnDisk, dorisSize('insert'), dorisSize('upsert')])(
  'a sink: $name',
  (implementation) => {
    test.each(contractCases(sinkSizeContractOf(manyRows), implementation))('$name', ({ run }) => run())
  },
)
