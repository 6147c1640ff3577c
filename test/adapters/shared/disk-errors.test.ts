import { expect, test } from 'vitest'
import { diskError } from '../../../lib/adapters/shared/disk-errors.ts'
import { PawlError } from '../../../lib/model/errors.ts'

const thrown = (code: string) => Object.assign(new Error(code), { code })

test.each([
  ['ENOSPC', 'DISK_FULL'],
  ['EDQUOT', 'DISK_FULL'],
  ['EACCES', 'STORE_UNAVAILABLE'],
  ['EIO', 'STORE_UNAVAILABLE'],
  ['EROFS', 'STORE_UNAVAILABLE'],
  ['EMFILE', 'STORE_UNAVAILABLE'],
])('%s is %s, with path and cause', (errno, code) => {
  const cause = thrown(errno)
  const error = diskError(cause, 'write', '/data/x')
  expect(error).toMatchObject({ code, kind: 'Retryable', cause, details: { path: '/data/x', errno } })
  expect(error.message).toContain(`cannot write /data/x (${errno})`)
})

test('lets our own errors pass and takes another code on request', () => {
  const ours = new PawlError('ASSERTION_FAILED', 'x')
  expect(diskError(ours, 'write', '/x')).toBe(ours)
  expect(diskError(thrown('EIO'), 'write', '/x', 'LEDGER_UNAVAILABLE').code).toBe('LEDGER_UNAVAILABLE')
  expect(diskError('text', 'write', '/x').code).toBe('STORE_UNAVAILABLE')
})
