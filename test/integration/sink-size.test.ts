import { describe, test } from 'vitest'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkSizeContract } from '../../lib/testing/contracts/sink-size.ts'
import { file, memory } from '../support/sink-implementations.ts'

describe.each([memory, file])('a sink: $name', ({ name, fresh }) => {
  test.each(contractCases(sinkSizeContract, { name, fresh }))('$name', ({ run }) => run())
})
