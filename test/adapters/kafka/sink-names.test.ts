import fc from 'fast-check'
import { expect, test } from 'vitest'
import { controlTopic, transactionalId } from '../../../lib/adapters/kafka/names.ts'

const identity = { stage: 'dev', pipeline: 'word-count', sink: 'out' }

test('names say whose they are', () => {
  expect(transactionalId(identity, 3)).toBe('pawl-dev-word--count-out-3')
  expect(controlTopic(identity)).toBe('pawl-control-dev-word--count-out')
  expect(controlTopic(identity, 'team.pawl')).toBe('team.pawl-dev-word--count-out')
})

test('case 22: two pipelines with equal sink names share neither id nor control topic', () => {
  const part = fc.oneof(
    fc.string({ maxLength: 8 }),
    fc.string({ unit: fc.constantFrom('a', 'b', '-', '_'), maxLength: 6 }),
  )
  const anyIdentity = fc.record({ stage: part, pipeline: part, sink: part })
  fc.assert(
    fc.property(anyIdentity, anyIdentity, fc.nat(40), fc.nat(40), (one, other, oneLane, otherLane) => {
      const same =
        JSON.stringify([one.stage, one.pipeline, one.sink]) ===
        JSON.stringify([other.stage, other.pipeline, other.sink])
      expect(controlTopic(one) === controlTopic(other)).toBe(same)
      expect(transactionalId(one, oneLane) === transactionalId(other, otherLane)).toBe(same && oneLane === otherLane)
    }),
    { numRuns: 2000 },
  )
})

test('a control topic has a name that Kafka accepts, however long and odd its parts are', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300, unit: 'binary' }), fc.string({ maxLength: 300 }), (pipeline, sink) => {
      expect(controlTopic({ stage: 'x', pipeline, sink })).toMatch(/^[A-Za-z0-9._-]{1,249}$/)
    }),
  )
  const long = { stage: 'x', pipeline: 'p'.repeat(300), sink: 's' }
  expect(controlTopic(long)).not.toBe(controlTopic({ ...long, sink: 't' }))
})
