/**
 * A real file system in an image file, whose power can be cut.
 *
 * A copy of the image holds what had reached the disk and nothing of what the kernel still kept in memory; the
 * journal is written by itself only once a minute, so that what was not synced is really missing from the copy.
 * Needs root, loop devices and `mkfs.ext4`; without them tests are skipped with the reason.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface DiskImage {
  readonly path: string
  /** What `check` finds in a file system as if the power had been cut now, mounted after a restart. */
  afterPowerCut<T>(check: (path: string) => Promise<T>): Promise<T>
  unmount(): void
}

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'pipe' })

/** Lazily, so that a test which failed with files open leaves no mount behind. */
const unmountNow = (path: string) => run('umount', '-l', path)

/** A mounted, empty ext4 of 64 MB, or the reason why there is none. */
export function mountDiskImage(): DiskImage | string {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-image-'))
  const image = join(directory, 'image')
  const [path, restarted] = [join(directory, 'mounted'), join(directory, 'restarted')]
  mkdirSync(path)
  mkdirSync(restarted)
  try {
    run('truncate', '-s', '64M', image)
    run('mkfs.ext4', '-q', '-F', image)
    run('mount', '-o', 'loop,commit=60', image, path)
  } catch (error) {
    rmSync(directory, { recursive: true })
    return `mount of an ext4 image failed (${(error as Error).message.trim()}); power cuts were not tested`
  }
  let cuts = 0
  return {
    path,
    async afterPowerCut(check) {
      // A name of its own: a copy that is still mounted somewhere would be mounted again as it was.
      const copy = join(directory, `copy-${cuts++}`)
      copyFileSync(image, copy)
      run('mount', '-o', 'loop', copy, restarted)
      try {
        return await check(restarted)
      } finally {
        unmountNow(restarted)
        rmSync(copy)
      }
    },
    unmount() {
      unmountNow(path)
      rmSync(directory, { recursive: true })
    },
  }
}
