import { expect, test } from 'vitest'
import { callMeter, isThrottle, meterCalls } from '../../../lib/adapters/shared/meter.ts'
import { storeRequestsOf } from '../../../lib/model/usage.ts'

type Call = (args: { readonly input: object }) => Promise<{ readonly output: unknown }>
type Middleware = (next: Call, context: { readonly commandName: string }) => Call

/** A client whose answers a test decides; what is sent is noted. */
function clientOf(answers: readonly (() => unknown)[]) {
  const sent: object[] = []
  let around: Middleware = (next) => next
  const left = [...answers]
  return {
    sent,
    middlewareStack: {
      add(middleware: unknown) {
        around = middleware as Middleware
      },
    },
    async send(commandName: string, input: object) {
      const call = around(
        async (args) => {
          sent.push(args.input)
          return { output: left.shift()?.() }
        },
        { commandName },
      )
      return (await call({ input })).output
    },
  }
}

const failing = (fields: object) => () => {
  throw Object.assign(new Error('no'), fields)
}

test('counts every request once, with the units that DynamoDB reports', async () => {
  const meter = callMeter()
  const client = clientOf([
    () => ({ ConsumedCapacity: { CapacityUnits: 1 } }),
    () => ({ ConsumedCapacity: [{ CapacityUnits: 4 }, { CapacityUnits: 2 }] }),
    failing({ name: 'ConditionalCheckFailedException' }),
  ])
  meterCalls(client as never, 'dynamodb', meter)
  await client.send('GetItemCommand', { Key: 1 })
  await client.send('TransactWriteItemsCommand', {})
  await expect(client.send('PutItemCommand', {})).rejects.toThrow('no')
  expect(client.sent[0]).toEqual({ Key: 1, ReturnConsumedCapacity: 'TOTAL' })
  const calls = { 'dynamodb:GetItem': 1, 'dynamodb:TransactWriteItems': 1, 'dynamodb:PutItem': 1 }
  expect(meter.take()).toEqual({ calls, readUnits: 1, writeUnits: 7, throttles: 0 })
})

test('begins at nothing again once the sum is taken', async () => {
  const meter = callMeter()
  const client = clientOf([() => ({})])
  meterCalls(client as never, 's3', meter)
  await client.send('PutObjectCommand', {})
  expect(meter.take().calls).toEqual({ 's3:PutObject': 1 })
  expect(meter.take()).toEqual({ calls: {}, readUnits: 0, writeUnits: 0, throttles: 0 })
})

test('without a meter the client stays as it is', () => {
  const client = { middlewareStack: { add: () => expect.unreachable() } }
  expect(() => meterCalls(client as never, 's3', undefined)).not.toThrow()
})

test.each([
  [{ name: 'ThrottlingException' }, true],
  [{ name: 'SlowDown', $metadata: { httpStatusCode: 503 } }, true],
  [{ name: 'Whatever', $metadata: { httpStatusCode: 429 } }, true],
  [{ name: 'ExecutionLimitExceeded' }, true],
  [
    { name: 'TransactionCanceledException', CancellationReasons: [{ Code: 'None' }, { Code: 'ThrottlingError' }] },
    true,
  ],
  [{ name: 'TransactionCanceledException', CancellationReasons: [{ Code: 'ConditionalCheckFailed' }] }, false],
  [{ name: 'InternalError', $metadata: { httpStatusCode: 500 } }, false],
])('%j is a throttle: %s', (fields, expected) => {
  expect(isThrottle(Object.assign(new Error('no'), fields))).toBe(expected)
})

test('requests of S3 are billed in two classes, deletions not at all', () => {
  const calls = {
    's3:PutObject': 2,
    's3:ListObjectsV2': 1,
    's3:GetObject': 4,
    's3:DeleteObjects': 9,
    'dynamodb:GetItem': 9,
  }
  expect(storeRequestsOf({ calls })).toEqual({ writes: 3, reads: 4 })
})
