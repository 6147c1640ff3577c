/**
 * vitest's `test` with foreign readers of Delta tables, one Python process for each file.
 *
 * Without Python a test is skipped with a reason (which fails under CI, see the reporter).
 */
import { test } from 'vitest'
import { type DeltaReaders, missingDeltaReaders, startDeltaReaders } from './delta-readers.ts'

export { type DeltaReaders, missingDeltaReaders, startDeltaReaders } from './delta-readers.ts'

/** vitest's `test` with foreign readers. Without Python it is skipped with a reason, which fails under CI. */
export const deltaTest = test.extend<{ readers: DeltaReaders }>({
  readers: [
    async ({ skip }, use) => {
      const missing = missingDeltaReaders()
      if (missing !== null) skip(missing)
      const readers = startDeltaReaders()
      await use(readers)
      readers.stop()
    },
    { scope: 'file' },
  ],
})
