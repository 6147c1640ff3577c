/**
 * What goes wrong, all the time, with the calls that functions make: throttles, losses, repetitions, delays.
 *
 * Drawn for every call and kind of fault; about one write in ten is unlucky. Reads are only refused or lost, since nothing else can befall them.
 */
import type { Prng } from '../../lib/model/prng.ts'
import type { FaultProxy, ProxiedCall, ProxyFault } from './fault-proxy.ts'

const answered = (status: number, code: string, passedOn = false): ProxyFault => {
  return { fault: 'answered', status, code, passedOn }
}
const anyWrite: readonly ProxyFault[] = [
  { fault: 'answer-lost' },
  { fault: 'request-lost' },
  { fault: 'repeated', answer: 'second' },
  { fault: 'repeated', answer: 'first' },
  { fault: 'late', afterMs: 300 },
  { fault: 'delayed', afterMs: 500 },
]
const faults = {
  dynamodb: {
    write: [
      ...anyWrite,
      answered(500, 'InternalServerError', true),
      answered(400, 'ThrottlingException'),
      answered(400, 'TransactionInProgressException', true),
    ],
    read: [{ fault: 'answer-lost' }, answered(400, 'ProvisionedThroughputExceededException')],
  },
  s3: {
    write: [
      ...anyWrite,
      answered(500, 'InternalError', true),
      answered(503, 'SlowDown'),
      answered(409, 'ConditionalRequestConflict'),
    ],
    read: [{ fault: 'answer-lost' }, answered(503, 'SlowDown')],
  },
} as const satisfies Record<string, Record<'write' | 'read', readonly ProxyFault[]>>

const unluckyOf = 90
const timesMax = 1_000_000

/** Begins; `end` stops it and answers with how many calls went wrong. */
export function hostileCalls(proxy: FaultProxy, random: Prng): { end(): number } {
  const planned = Object.entries(faults).flatMap(([place, kinds]) =>
    Object.entries(kinds).flatMap(([kind, each]) =>
      each.map((fault) => [fault, (call: ProxiedCall) => kindOf(call) === `${place} ${kind}`] as const),
    ),
  )
  let isOver = false
  let wrong = 0
  for (const [fault, fits] of planned) {
    const matches = (call: ProxiedCall) => {
      // Every kind of fault is asked in turn: each gets its part of the bad luck.
      const isUnlucky = !isOver && fits(call) && random.int(unluckyOf) === 0
      if (isUnlucky) wrong++
      return isUnlucky
    }
    proxy.plan(matches, fault, timesMax)
  }
  return {
    end() {
      isOver = true
      return wrong
    },
  }
}

function kindOf({ method, operation, path }: ProxiedCall): string {
  if (operation === '')
    return method === 'GET' || method === 'HEAD' || path.includes('?delete') ? 's3 read' : 's3 write'
  if (/^(GetItem|Query|BatchGetItem)$/.test(operation)) return 'dynamodb read'
  return /^(PutItem|UpdateItem|TransactWriteItems)$/.test(operation) ? 'dynamodb write' : 'other'
}
