/**
 * Which names a store accepts: the same in every store, so that what works on one machine works in a bucket.
 *
 * A name is `/`-separated parts of `[A-Za-z0-9._=-]`; no part is empty, `.` or `..`, so a name is never absolute
 * and never leaves its directory. Part and name lengths are those of common file systems and of S3.
 */
import { assert } from '../../model/assert.ts'

const nameForm = /^(?!\.{1,2}(?:\/|$))[A-Za-z0-9._=-]+(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._=-]+)*$/
const prefixForm = /^[A-Za-z0-9._=/-]*$/

/** Longest part of a name, in bytes: what ext4, XFS, APFS and NTFS hold. */
const partBytesMax = 255
/** Longest name, in bytes: what S3 holds. */
const nameBytesMax = 1024

/** False for what somebody else left where objects are, as far as its form tells. */
export function isObjectName(name: string): boolean {
  return nameForm.test(name)
}

/** Throws `ASSERTION_FAILED` unless `name` may name an object. */
export function assertObjectName(name: string): void {
  assert(nameForm.test(name), `${JSON.stringify(name)} is no object name`)
  assert(name.length <= nameBytesMax, `object name of ${name.length} bytes; at most ${nameBytesMax}`)
  for (let start = 0; start < name.length; ) {
    const slash = name.indexOf('/', start)
    const end = slash < 0 ? name.length : slash
    assert(end - start <= partBytesMax, `object name with a part of ${end - start} bytes; at most ${partBytesMax}`)
    start = end + 1
  }
}

/** Throws `ASSERTION_FAILED` unless `prefix` can begin an object name; the empty prefix begins all of them. */
export function assertObjectPrefix(prefix: string): void {
  const beginsName = prefixForm.test(prefix) && !prefix.startsWith('/') && !prefix.includes('//')
  assert(beginsName && !/(?:^|\/)\.{1,2}\//.test(prefix), `${JSON.stringify(prefix)} begins no object name`)
}

/** Throws `ASSERTION_FAILED` unless `[start, end)` is a range of bytes; it may reach past the object's end. */
export function assertByteRange(range: { readonly start: number; readonly end: number }): void {
  const { start, end } = range
  const valid = Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && end >= start
  assert(valid, `[${start}, ${end}) is no range of bytes`)
}
