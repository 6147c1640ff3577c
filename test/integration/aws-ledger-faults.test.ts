/**
 * What the DynamoDB ledger makes of lost answers, conflicts, throttles and cancelled transactions, on real sockets.
 */
import { describe, expect } from 'vitest'
import { dynamoLedger } from '../../lib/adapters/dynamodb/ledger.ts'
import type { Ledger } from '../../lib/ports/ledger.ts'
import { sampleHead, sampleItem } from '../../lib/testing/contracts/heads.ts'
import { awsTest } from '../support/aws.ts'
import { freshTable } from '../support/aws-places.ts'
import { type FaultProxy, faultProxy, type ProxiedCall, type ProxyFault } from '../support/fault-proxy.ts'

const test = awsTest.extend<{ world: { proxy: FaultProxy; ledger: Ledger; witness: Ledger } }>({
  world: async ({ emulator }, use) => {
    const proxy = await faultProxy(emulator.endpoint)
    const table = await freshTable(emulator)
    const witness = dynamoLedger({ ...emulator.client, table })
    const ledger = dynamoLedger({ ...emulator.client, endpoint: proxy.endpoint, table })
    await witness.create(sampleHead('p', 1), sampleItem(0))
    await use({ proxy, ledger, witness })
    await ledger.close()
    await witness.close()
    await proxy.close()
  },
})

const put = ({ operation }: ProxiedCall) => operation === 'PutItem'
const transact = ({ operation }: ProxiedCall) => operation === 'TransactWriteItems'
const update = ({ operation }: ProxiedCall) => operation === 'UpdateItem'
const read = ({ operation }: ProxiedCall) => operation === 'GetItem' || operation === 'Query'
const code = (name: string) => expect.objectContaining({ code: name })
const answered = (name: string, status = 400, more = {}): ProxyFault => ({
  fault: 'answered',
  status,
  code: name,
  more,
})
const cancelled = (...codes: string[]): ProxyFault =>
  answered('TransactionCanceledException', 400, { CancellationReasons: codes.map((Code) => ({ Code })) })
const commit = (ledger: Ledger, write = 'mine') =>
  ledger.swap(1, sampleHead('p', 2, write), { history: sampleItem(1, write) })

describe('a write whose answer was lost', () => {
  test('case 1: is found again by its own id, once, with its history item', async ({ world }) => {
    const { proxy, ledger, witness } = world
    proxy.plan(transact, { fault: 'answer-lost' })
    expect(await commit(ledger)).toBe('swapped')
    expect(await witness.read('p')).toEqual(sampleHead('p', 2, 'mine'))
    expect(await witness.histories('p', 0, 9)).toEqual([sampleItem(0), sampleItem(1, 'mine')])
    expect(proxy.calls).toHaveLength(2)
  })

  test('case 4: is no lost race when its own earlier try fails its condition', async ({ world }) => {
    const { proxy, ledger, witness } = world
    for (const [index, fault] of (
      [
        { fault: 'answer-lost' },
        { fault: 'answered', status: 500, code: 'InternalServerError', passedOn: true },
        { fault: 'answered', status: 503, code: 'ServiceUnavailable', passedOn: true },
      ] satisfies ProxyFault[]
    ).entries()) {
      proxy.plan(put, fault)
      expect(await ledger.swap(index + 1, sampleHead('p', index + 2, `mine-${index}`))).toBe('swapped')
    }
    expect((await witness.read('p'))?.write).toBe('mine-2')
    proxy.plan(transact, { fault: 'answer-lost' })
    expect(await ledger.create(sampleHead('q', 1), sampleItem(0))).toBe('created')
  })

  test('case 1: is unknown when somebody has written since', async ({ world }) => {
    const { proxy, ledger, witness } = world
    proxy.plan(put, { fault: 'late', afterMs: 0 })
    proxy.plan(put, { fault: 'delayed', afterMs: 400 })
    const swap = ledger.swap(1, sampleHead('p', 2, 'mine'))
    await expect.poll(async () => (await witness.read('p'))?.write).toBe('mine')
    await witness.swap(2, sampleHead('p', 3, 'other'))
    await expect(swap).rejects.toEqual(code('UNKNOWN_RESULT'))
    expect((await witness.read('p'))?.write).toBe('other')
  })

  test('case 2: is unknown as long as nobody answers, and may still arrive', async ({ world }) => {
    const { proxy, ledger, witness } = world
    proxy.plan(transact, { fault: 'late', afterMs: 300 })
    proxy.plan(transact, { fault: 'request-lost' }, 7)
    await expect(commit(ledger)).rejects.toEqual(code('UNKNOWN_RESULT'))
    await expect.poll(async () => (await witness.read('p'))?.write).toBe('mine')
    expect(await commit(ledger, 'other')).toBe('moved')
  })

  test('case 6: has one effect when it arrives twice', async ({ world }) => {
    const { proxy, ledger, witness } = world
    proxy.plan(transact, { fault: 'repeated', answer: 'first' })
    expect(await commit(ledger)).toBe('swapped')
    expect((await witness.read('p'))?.revision).toBe(2)
    expect(await witness.histories('p', 0, 9)).toHaveLength(2)
    // Another client sends the same commit again, with no token that anybody remembers.
    expect(await commit(witness)).toBe('moved')
    expect(await witness.histories('p', 0, 9)).toHaveLength(2)
  })
})

describe('a transaction that did not go through', () => {
  test('case 5: in progress is waited for, whatever came of it', async ({ world }) => {
    const { proxy, ledger, witness } = world
    proxy.plan(transact, answered('TransactionInProgressException'), 2)
    expect(await commit(ledger)).toBe('swapped')
    proxy.plan(transact, { fault: 'answered', status: 400, code: 'TransactionInProgressException', passedOn: true })
    expect(await ledger.swap(2, sampleHead('p', 3, 'again'), { history: sampleItem(2) })).toBe('swapped')
    expect((await witness.read('p'))?.revision).toBe(3)
  })

  test('case 7: conflicts and throttles are tried again', async ({ world }) => {
    const { proxy, ledger } = world
    for (const fault of [
      cancelled('None', 'TransactionConflict'),
      cancelled('ThrottlingError', 'None'),
      cancelled('ProvisionedThroughputExceeded', 'TransactionConflict'),
      answered('ThrottlingException'),
      answered('ProvisionedThroughputExceededException'),
    ]) {
      proxy.plan(transact, fault)
    }
    expect(await commit(ledger)).toBe('swapped')
    expect(proxy.calls).toHaveLength(6)
  })

  test('case 7: a condition that failed is never tried again', async ({ world }) => {
    const { proxy, ledger } = world
    for (const codes of [
      ['ConditionalCheckFailed', 'None'],
      ['None', 'ConditionalCheckFailed'],
      ['TransactionConflict', 'ConditionalCheckFailed'],
    ]) {
      proxy.forget()
      proxy.plan(transact, cancelled(...codes))
      expect(await commit(ledger)).toBe('moved')
      expect(proxy.calls).toHaveLength(1)
    }
    proxy.plan(put, answered('ConditionalCheckFailedException'))
    expect(await ledger.swap(1, sampleHead('p', 2))).toBe('moved')
  })

  test('case 7: what no other try changes is told at once', async ({ world }) => {
    const { proxy, ledger, witness } = world
    proxy.plan(transact, cancelled('TransactionConflict', 'ValidationError'))
    await expect(commit(ledger)).rejects.toEqual(code('ASSERTION_FAILED'))
    proxy.plan(transact, cancelled('None', 'ConditionalCheckFailed', 'ItemCollectionSizeLimitExceeded'))
    await expect(commit(ledger)).rejects.toEqual(code('ASSERTION_FAILED'))
    proxy.plan(transact, answered('ValidationException'))
    await expect(commit(ledger)).rejects.toEqual(code('ASSERTION_FAILED'))
    proxy.plan(transact, answered('AccessDeniedException'))
    await expect(commit(ledger)).rejects.toEqual(code('AWS_ACCESS_DENIED'))
    proxy.plan(transact, answered('ResourceNotFoundException'))
    await expect(commit(ledger)).rejects.toEqual(code('AWS_RESOURCE_MISSING'))
    expect(proxy.calls).toHaveLength(5)
    expect((await witness.read('p'))?.revision).toBe(1)
  })

  test('case 7: conflicts that do not end are retryable, with nothing written', async ({ world }) => {
    const { proxy, ledger, witness } = world
    proxy.plan(transact, cancelled('TransactionConflict', 'None'), 100)
    await expect(commit(ledger)).rejects.toEqual(code('LEDGER_UNAVAILABLE'))
    proxy.plan(update, answered('TransactionConflictException'))
    expect(await ledger.ring('p')).toBe(1)
    expect((await witness.read('p'))?.revision).toBe(1)
  })
})

describe('beside writes of the head', () => {
  test('reads again what was lost or throttled', async ({ world }) => {
    const { proxy, ledger } = world
    proxy.plan(read, { fault: 'answer-lost' })
    proxy.plan(read, answered('ThrottlingException'))
    proxy.plan(read, answered('InternalServerError', 500))
    expect(await ledger.read('p')).toEqual(sampleHead('p', 1))
    proxy.plan(read, { fault: 'answer-lost' })
    expect(await ledger.pipelines()).toEqual(['p'])
    proxy.plan(read, answered('InternalServerError', 500), 100)
    await expect(ledger.history('p', 0)).rejects.toEqual(code('LEDGER_UNAVAILABLE'))
  })

  test('a ring whose answer was lost counts at least once', async ({ world }) => {
    const { proxy, ledger } = world
    proxy.plan(update, { fault: 'answer-lost' })
    expect(await ledger.ring('p')).toBe(2)
    expect(await ledger.wakes('p')).toBe(2)
  })

  test('refuses a head that does not fit into an item', async ({ world }) => {
    const { proxy, ledger } = world
    const lanes = Array.from({ length: 8_000 }, (_, lane) => ({ sink: 'out', lane, target: 'topic-of-this-lane' }))
    await expect(ledger.swap(1, { ...sampleHead('p', 2), lanes })).rejects.toEqual(code('HEAD_TOO_LARGE'))
    expect(proxy.calls).toEqual([])
  })
})
