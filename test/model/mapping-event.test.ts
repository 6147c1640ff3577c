import { describe, expect, test } from 'vitest'
import { batchesOf } from '../../lib/model/mapping-event.ts'

const event = (...records: readonly Record<string, unknown>[]) => ({
  eventSource: 'aws:kafka',
  records: { 'in-0': records.map((record) => ({ topic: 'in', partition: 0, timestamp: 5, headers: [], ...record })) },
})
const invalid = (message: RegExp) =>
  expect.objectContaining({ code: 'INTAKE_EVENT_INVALID', message: expect.stringMatching(message) })

describe('records of an event', () => {
  test('case 39: keep null apart from empty, and every byte of keys, values and headers', () => {
    const [batch] = batchesOf(
      event(
        { offset: 7, key: 'AP8=', value: '', headers: [{ trace: [-61, 164] }, { trace: [] }, { none: null }] },
        { offset: 8, value: null },
        { offset: 9, key: '', timestamp: -1 },
      ),
    )!
    expect(batch).toEqual({
      topic: 'in',
      partition: 0,
      records: [
        {
          offset: 7n,
          timestampMs: 5,
          key: Buffer.from([0, 255]),
          value: Buffer.alloc(0),
          headers: [
            ['trace', Buffer.from('ä')],
            ['trace', Buffer.alloc(0)],
            ['none', null],
          ],
        },
        { offset: 8n, timestampMs: 5, key: null, value: null, headers: [] },
        { offset: 9n, timestampMs: -1, key: Buffer.alloc(0), value: null, headers: [] },
      ],
    })
  })

  test('case 67: come in the order of offsets, each once', () => {
    const [{ records }] = batchesOf(event({ offset: 3 }, { offset: 1 }, { offset: 3 }, { offset: 2 }))!
    expect(records.map(({ offset }) => offset)).toEqual([1n, 2n, 3n])
  })

  test('are none where no mapping sent it', () => {
    expect(batchesOf({ source: 'aws.events' })).toBeNull()
    expect(batchesOf(null)).toBeNull()
    expect(batchesOf({ eventSource: 'SelfManagedKafka' })).toEqual([])
  })

  test.each([
    ['an offset that JSON has rounded', { offset: 2 ** 53 }, /9007199254740992, which is not exact/],
    ['no topic', { offset: 1, topic: undefined }, /no topic or partition/],
    ['what is no base64', { offset: 1, value: 'a' }, /the value of offset 1 of in\/0/],
    ['no timestamp', { offset: 1, timestamp: '5' }, /no timestamp/],
    ['a header that is text', { offset: 1, headers: [{ a: 'text' }] }, /header a of offset 1/],
  ])('are refused for %s', (_, record, message) => {
    expect(() => batchesOf(event(record))).toThrow(invalid(message))
  })

  test('are refused when two claim one offset', () => {
    expect(() => batchesOf(event({ offset: 1, value: 'AA==' }, { offset: 1 }))).toThrow(invalid(/twice/))
  })
})
