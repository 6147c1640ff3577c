import { expect } from 'vitest'
import { postgresTest as test } from '../support/postgres.ts'
import { postgresDatabase } from '../support/table-databases.ts'
import { refusalCases } from '../support/table-refusals.ts'

for (const [name, run] of Object.entries(refusalCases)) {
  test(`a PostgreSQL sink with dead letters: ${name}`, async ({ postgres }) => {
    await expect(run(postgresDatabase(postgres))).resolves.toBeUndefined()
  })
}
