/**
 * A file system of a megabyte, for tests that fill it.
 *
 * Mounting takes the rights of root; without them the tests that need one are skipped with the reason.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk {
  readonly path: string
  unmount(): void
}

/** The mounted disk, or the reason why there is none. */
export function mountSmallDisk(): SmallDisk | string {
  const path = mkdtempSync(join(tmpdir(), 'pawl-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', path], { stdio: 'pipe' })
  } catch (error) {
    rmdirSync(path)
    return `mount of a small tmpfs failed (${(error as Error).message.trim()}); full disks were not tested`
  }
  return {
    path,
    unmount() {
      execFileSync('umount', ['-l', path], { stdio: 'pipe' })
      rmdirSync(path)
    },
  }
}
