/**
 * Lets the file system fail at one chosen call, for adapters that use the synchronous functions of `node:fs`.
 *
 * The failure is thrown before or after the call really happens, and every later call fails too, until the disk is
 * mended: what the process knew is lost, as in a crash, and only what it had done is left.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const calls = ['openSync', 'writeSync', 'fsyncSync', 'linkSync', 'renameSync', 'unlinkSync', 'mkdirSync'] as const

/** How a disk fails. */
export interface DiskFailure {
  /** Which call fails, from 0. */
  readonly at: number
  readonly when: 'before' | 'after'
  /** Later calls go through: one error, not a crash. */
  readonly once?: boolean
  /** Counts and fails only these. */
  readonly only?: (typeof calls)[number]
  readonly errno?: string
}

/** Runs `deed` on a disk that fails; tells whether the failure was reached. */
export async function withFailingDisk(failure: DiskFailure, deed: () => Promise<unknown>): Promise<'failed' | 'done'> {
  const disk = failDisk(failure)
  try {
    await deed()
  } catch (thrown) {
    if (!disk.reached) throw thrown
  } finally {
    disk.mend()
  }
  return disk.reached ? 'failed' : 'done'
}

/** Lets the disk fail from now on, until it is mended. */
export function failDisk(failure: DiskFailure): { readonly reached: boolean; mend(): void } {
  const originals = Object.fromEntries(calls.map((call) => [call, fs[call]]))
  const error = () => Object.assign(new Error('the disk failed'), { code: failure.errno ?? 'EIO' })
  let count = 0
  let reached = false
  for (const call of calls.filter((name) => failure.only === undefined || name === failure.only)) {
    const original = fs[call] as (...args: unknown[]) => unknown
    const failing = (...args: unknown[]) => {
      if (reached && !failure.once) throw error()
      if (count++ !== failure.at) return original(...args)
      reached = true
      if (failure.when === 'after') original(...args)
      throw error()
    }
    Object.assign(fs, { [call]: failing })
  }
  syncBuiltinESMExports()
  return {
    get reached() {
      return reached
    },
    mend() {
      Object.assign(fs, originals)
      syncBuiltinESMExports()
    },
  }
}

/** Fails one call of the disk, as `disturb` of the sink contract cuts one exchange with a server. */
export async function disturbDisk(at: number, when: DiskFailure['when']): Promise<() => Promise<boolean>> {
  const disk = failDisk({ at, when, once: true })
  return async () => {
    disk.mend()
    return disk.reached
  }
}
