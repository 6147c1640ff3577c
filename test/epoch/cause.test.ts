import { describe, expect, test } from 'vitest'
import { carry, causeOf } from '../../lib/epoch/cause.ts'
import { PawlError } from '../../lib/index.ts'

const details = { source: 'lines', topic: 'lines', partition: 3, offset: '9007199254740993', operator: 'parse' }
const error = new PawlError('OPERATOR_FAILED', 'parse on lines/3', details, new TypeError('x is not a function'))
const record = { source: 'lines', partition: 3, offset: '9007199254740993' }

describe('a cause', () => {
  test('of our own error is its code, kind and record', () => {
    expect(causeOf(error)).toMatchObject({ code: 'OPERATOR_FAILED', kind: 'Invalid', operator: 'parse', record })
  })

  test('case 38: comes through States Language unchanged, offsets beyond 2^53 too', () => {
    const carried = carry(error)
    expect(carried.name).toBe('Invalid')
    const local = causeOf({ Error: carried.name, Cause: carried.message })
    const lambda = causeOf({
      Error: carried.name,
      Cause: JSON.stringify({ errorMessage: carried.message, errorType: 'Invalid', trace: [] }),
    })
    for (const cause of [local, lambda]) {
      expect(cause).toEqual({
        code: 'OPERATOR_FAILED',
        kind: 'Invalid',
        message: error.message,
        operator: 'parse',
        record,
      })
    }
  })

  test('of a step that took too long is a timeout', () => {
    for (const name of ['States.Timeout', 'StatesTimeoutError']) {
      expect(causeOf({ Error: name, Cause: '' })).toMatchObject({ code: 'EPOCH_TIMEOUT', kind: 'Retryable' })
    }
  })

  test('of anything else is a bug that keeps its words', () => {
    expect(causeOf(new TypeError('undefined is not a function'))).toMatchObject({
      code: 'ASSERTION_FAILED',
      kind: 'Bug',
    })
    expect(causeOf(new TypeError('undefined is not a function')).message).toContain('undefined is not a function')
    expect(causeOf({ Error: 'Error', Cause: 'odd' }).message).toContain('odd')
    for (const odd of [undefined, null, 7, 'text', {}, { Error: 'X' }])
      expect(causeOf(odd).code).toBe('ASSERTION_FAILED')
  })

  test('that was carried twice is still understood', () => {
    const twice = carry(carry(error))
    expect(causeOf({ Error: twice.name, Cause: twice.message }).message).toContain('OPERATOR_FAILED')
  })
})
