import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { wakeOf } from '../../lib/model/wake.ts'

const record = (topic: string, partition: number, offset: unknown) => ({
  topic,
  partition,
  offset,
  value: 'aGk=',
  headers: [],
})

describe('wakeOf', () => {
  test('takes the highest end of each partition out of a batch, whatever its order', () => {
    const records = {
      'a-0': [record('a', 0, 7), record('a', 0, 3)],
      'a-1': [record('a', 1, 0)],
      'b-0': [record('b', 0, 9)],
    }
    const ends = new Map([
      ['a/0', { topic: 'a', partition: 0, end: 8n }],
      ['a/1', { topic: 'a', partition: 1, end: 1n }],
      ['b/0', { topic: 'b', partition: 0, end: 10n }],
    ])
    expect(wakeOf({ eventSource: 'aws:kafka', records })).toEqual({ wake: 'records', ends })
    expect(wakeOf({ eventSource: 'SelfManagedKafka', records })).toEqual({ wake: 'records', ends })
  })

  test.each([
    ['no records', {}],
    ['an empty batch', { 'a-0': [] }],
    ['a batch that is no list', { 'a-0': 7 }],
    ['a record that is no object', { 'a-0': [null] }],
    ['an offset beyond 2^53', { 'a-0': [record('a', 0, 2 ** 53)] }],
    ['an offset as text', { 'a-0': [record('a', 0, '7')] }],
    ['a negative partition', { 'a-0': [record('a', -1, 7)] }],
  ])('a batch with %s is a bare ring', (_, records) => {
    expect(wakeOf({ eventSource: 'aws:kafka', records })).toEqual({ wake: 'ring' })
  })

  test('tells a tick and the end of an execution from anything else', () => {
    expect(wakeOf({ source: 'aws.events', 'detail-type': 'Scheduled Event' })).toEqual({ wake: 'tick' })
    const died = { source: 'aws.states', 'detail-type': 'Step Functions Execution Status Change' }
    expect(wakeOf({ ...died, detail: { executionArn: 'arn' } })).toEqual({ wake: 'death', place: 'arn' })
    expect(wakeOf({ ...died, detail: null })).toEqual({ wake: 'ring' })
    expect(wakeOf({ source: 'aws.s3' })).toEqual({ wake: 'ring' })
  })

  test('a person may ask to go on although the pipeline is parked', () => {
    expect(wakeOf({ resume: true })).toEqual({ wake: 'ring', resume: true })
    expect(wakeOf({ resume: 'yes' })).toEqual({ wake: 'ring' })
  })

  test('a forged event of any shape is understood somehow', () => {
    const forged = fc.record({
      eventSource: fc.constantFrom('aws:kafka', 'x'),
      records: fc.anything(),
      detail: fc.anything(),
    })
    fc.assert(
      fc.property(fc.oneof(forged, fc.anything()), (event) =>
        ['ring', 'records', 'tick', 'death'].includes(wakeOf(event).wake),
      ),
    )
  })
})
