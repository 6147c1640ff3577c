/**
 * vitest's `test` with an emulator of AWS.
 *
 * All integration tests of a run share the `emulator`, started when the first of them needs it; each makes buckets
 * and tables of its own. Without Python a test that asks for it is skipped with a reason (which fails under CI, see
 * the reporter).
 */
import { test } from 'vitest'
import { type Emulator, missingEmulatorTool, sharedEmulator } from './aws-emulator.ts'

export {
  type Emulator,
  type EmulatorClientOptions,
  type EmulatorOptions,
  missingEmulatorTool,
  sharedEmulator,
  startEmulator,
} from './aws-emulator.ts'

/** vitest's `test` with the shared emulator. */
export const awsTest = test.extend<{ emulator: Emulator }>({
  emulator: async ({ skip }, use) => {
    const missing = process.env.PAWL_AWS_ENDPOINT ? null : missingEmulatorTool()
    if (missing !== null) skip(missing)
    await use(await sharedEmulator())
  },
})
