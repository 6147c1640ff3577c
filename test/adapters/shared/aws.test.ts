import { describe, expect, test } from 'vitest'
import { type Deed, tryAgain, verdictOf } from '../../../lib/adapters/shared/aws.ts'

const answer = (name: string, status: number) =>
  Object.assign(new Error('as told'), { name, $metadata: { httpStatusCode: status } })
const broken = (code: string) => Object.assign(new Error('as told'), { code })
const write: Deed = { text: 'write it', writes: true, unavailable: 'LEDGER_UNAVAILABLE' }
const read: Deed = { ...write, writes: false }
const code = (name: string) => expect.objectContaining({ code: name })

/** Fails with each error in turn, then answers. */
function failing(...errors: unknown[]) {
  const seen: boolean[] = []
  const call = async ({ unclear }: { unclear: boolean }) => {
    seen.push(unclear)
    if (seen.length <= errors.length) throw errors[seen.length - 1]
    return 'done'
  }
  return { call, seen }
}

test.each([
  ['undone', answer('ThrottlingException', 400)],
  ['undone', answer('ProvisionedThroughputExceededException', 400)],
  ['undone', answer('AnyName', 429)],
  ['undone', answer('RequestTimeTooSkewed', 403)],
  ['undone', broken('ECONNREFUSED')],
  ['unclear', answer('InternalError', 500)],
  ['unclear', answer('SlowDown', 503)],
  ['unclear', answer('502', 502)],
  ['unclear', broken('ECONNRESET')],
  ['unclear', broken('EPIPE')],
  ['unclear', Object.assign(new Error(), { name: 'TimeoutError' })],
  ['denied', answer('AccessDeniedException', 400)],
  ['denied', answer('Forbidden', 403)],
  ['missing', answer('NoSuchBucket', 404)],
  ['missing', answer('ResourceNotFoundException', 400)],
  ['refused', answer('ValidationException', 400)],
  ['refused', answer('PreconditionFailed', 412)],
  ['foreign', new TypeError('a mistake of ours')],
  ['missing', new Error('Region is missing')],
  ['foreign', 'not even an error'],
] as const)('says %s of %s', (verdict, error) => {
  expect(verdictOf(error)).toBe(verdict)
})

describe('trying again', () => {
  test('goes on after what did nothing, and knows when a try was unclear', async () => {
    const { call, seen } = failing(answer('ThrottlingException', 400), broken('ECONNRESET'), broken('ECONNREFUSED'))
    expect(await tryAgain(write, call)).toBe('done')
    expect(seen).toEqual([false, false, true, true])
  })

  test('ends at once with an answer that stays the same', async () => {
    const { call, seen } = failing(answer('ValidationException', 400))
    await expect(tryAgain(write, call)).rejects.toEqual(code('ASSERTION_FAILED'))
    expect(seen).toHaveLength(1)
    await expect(tryAgain(write, failing(new TypeError('ours')).call)).rejects.toThrow(TypeError)
  })

  test('says unknown of a write as soon as any try was unclear, of a read never', async () => {
    const errors = [broken('ECONNRESET'), answer('AccessDeniedException', 400)]
    await expect(tryAgain(write, failing(...errors).call)).rejects.toEqual(code('UNKNOWN_RESULT'))
    await expect(tryAgain(read, failing(...errors).call)).rejects.toEqual(code('AWS_ACCESS_DENIED'))
  })

  test('gives up in the end, keeping the cause', async () => {
    const last = answer('ThrottlingException', 400)
    const { call, seen } = failing(...Array.from({ length: 100 }, () => last))
    await expect(tryAgain(write, call)).rejects.toMatchObject({ code: 'LEDGER_UNAVAILABLE', cause: last })
    expect(seen.length).toBeLessThan(20)
  })
})
