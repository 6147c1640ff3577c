import { expect, test } from 'vitest'
import { missingDeltaReaders } from '../support/delta.ts'
import { missingTool } from '../support/kafka.ts'
import { missingPostgres } from '../support/postgres.ts'
import { threeSinksOrdeal } from '../support/three-sinks-ordeal.ts'

test('three-sinks: a topic, a table and a Delta table show whole epochs of one commit whenever the process is killed, and agree', async ({
  skip,
}) => {
  const missing = missingTool() ?? missingPostgres() ?? missingDeltaReaders()
  if (missing !== null) skip(missing)
  const { faults, kills, epochs, payments, looks } = await threeSinksOrdeal({ seed: 3, kills: 5 })
  expect(faults).toEqual([])
  expect(kills).toBe(5)
  expect(epochs).toBeGreaterThanOrEqual(5)
  expect(payments).toBeGreaterThan(100)
  expect(looks.changes).toBe(6)
})
