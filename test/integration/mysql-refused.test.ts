import { expect } from 'vitest'
import { mariaDbTest as test } from '../support/mariadb.ts'
import { mariaDbDatabase } from '../support/table-databases.ts'
import { refusalCases } from '../support/table-refusals.ts'

for (const [name, run] of Object.entries(refusalCases)) {
  test(`a MySQL sink with dead letters: ${name}`, async ({ mariaDb }) => {
    await expect(run(mariaDbDatabase(mariaDb))).resolves.toBeUndefined()
  })
}
