/**
 * Translates what a file system throws into what Pawl throws.
 *
 * One place decides what a full disk, a missing permission or a broken device mean, for every adapter that
 * writes files. The original error stays as `cause`, its errno and path as details.
 */
import { type ErrorCode, isPawlError, PawlError } from '../../model/errors.ts'

/** The errno name of a thrown thing (`ENOENT`), or the empty string. */
export function errnoOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  return typeof code === 'string' ? code : ''
}

/** True when the file system has no room: no blocks, no inodes, or the user's share is used up. */
export function isDiskFull(error: unknown): boolean {
  const errno = errnoOf(error)
  return errno === 'ENOSPC' || errno === 'EDQUOT'
}

/**
 * The error to throw for a failed file operation: `DISK_FULL` for a full disk, else `otherwise`.
 *
 * `deed` says what was tried, as in `cannot write`. Errors of our own pass through.
 */
export function diskError(
  error: unknown,
  deed: string,
  path: string,
  otherwise: ErrorCode = 'STORE_UNAVAILABLE',
): PawlError {
  if (isPawlError(error)) return error
  const errno = errnoOf(error)
  const code = isDiskFull(error) ? 'DISK_FULL' : otherwise
  return new PawlError(code, `cannot ${deed} ${path}${errno && ` (${errno})`}`, { path, errno }, error)
}
