import { expect, test } from 'vitest'
import { errorRegistry } from '../../lib/model/errors.ts'
import { errorsPage } from '../../scripts/errors-page.ts'
import { type Breach, expectNone } from './breach.ts'
import { sources, textOf } from './source.ts'

const registry = 'lib/model/errors.ts'
const codes = Object.keys(errorRegistry)

test('the registry of errors is sorted', () => {
  expect(codes).toEqual([...codes].sort())
})

test('every error code is thrown somewhere', () => {
  const text = sources('lib', 'infra')
    .filter((file) => file.path !== registry)
    .map((file) => file.text)
    .join('\n')
  const lines = textOf(registry).split('\n')
  const breaches = codes
    .filter((code) => !text.includes(`'${code}'`))
    .map((code): Breach => {
      const line = lines.findIndex((candidate) => candidate.includes(`${code}:`)) + 1
      const remedy = 'Nothing throws it: remove it from the registry, and run npm run errors.'
      return { file: registry, line, rule: 'unthrown', subject: code, remedy }
    })
  expectNone('unthrown', breaches)
})

test('docs/errors.md is what the registry makes', () => {
  expect(textOf('docs/errors.md'), 'run npm run errors').toBe(errorsPage())
})
