/**
 * Directories whose entries survive a power failure, for the store on disk.
 *
 * A new file is only there for good once its directory was fsynced, and that directory only once its own parent
 * was. Handles are kept open, so that a directory is made durable once and many files then share one fsync
 * (those that wait while one runs share the next). A handle stands for the directory itself, not for its path:
 * when somebody removed the directory, `isAlive` says so, and nobody trusts a sync of the dead one.
 */
import { closeSync, constants, fstatSync, fsync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { PawlError } from '../../model/errors.ts'
import { diskError, errnoOf } from '../shared/disk-errors.ts'

/** Open handles to keep; attempts have directories of their own, so old ones are not needed again. */
const handlesMax = 64

/** One directory, held open by whoever opened it until they release it. */
export interface DurableDirectory {
  readonly path: string
  /** Makes all entries that are there now durable. */
  sync(): Promise<void>
  /** False once the directory was removed, whatever is now at its path. */
  isAlive(): boolean
  /** Gives the handle back; each `open` needs one. */
  release(): void
}

class OpenDirectory implements DurableDirectory {
  readonly path: string
  users = 0
  forgotten = false
  readonly #fd: number
  #running: Promise<void> | null = null
  #next: Promise<void> | null = null

  constructor(path: string) {
    this.path = path
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  }

  /** A sync that is under way may have missed the newest entry, so a late caller waits for the one after it. */
  sync(): Promise<void> {
    if (this.#running === null) return this.#start()
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    )
    return this.#next
  }

  #start(): Promise<void> {
    this.#next = null
    const running = new Promise<void>((resolve, reject) => {
      fsync(this.#fd, (error) => (error === null ? resolve() : reject(diskError(error, 'sync', this.path))))
    })
    this.#running = running
    const done = () => {
      if (this.#running === running) this.#running = null
    }
    running.then(done, done)
    return running
  }

  isAlive(): boolean {
    return fstatSync(this.#fd).nlink > 0
  }

  release(): void {
    this.users--
    this.#closeIfDone()
  }

  /** Closes as soon as nobody uses it. */
  forget(): void {
    if (this.forgotten) return
    this.forgotten = true
    this.#closeIfDone()
  }

  #closeIfDone(): void {
    if (this.forgotten && this.users === 0) closeSync(this.#fd)
  }
}

/** The directories below `root`, which exists already. */
export class Directories {
  readonly #root: string
  readonly #open = new Map<string, OpenDirectory>()
  readonly #opening = new Map<string, Promise<OpenDirectory>>()

  constructor(root: string) {
    this.#root = root
    this.#open.set(root, new OpenDirectory(root))
  }

  /** The directory at `path`, made if need be, with its entry durable in a parent whose entry is. */
  async open(path: string): Promise<DurableDirectory> {
    for (;;) {
      const directory = this.#open.get(path) ?? (await this.#openOnce(path))
      if (directory.forgotten) continue
      directory.users++
      this.#open.delete(path)
      this.#open.set(path, directory)
      this.#forgetOldest()
      return directory
    }
  }

  /** Forgets a directory that is dead or about to be removed. */
  forget(path: string): void {
    const directory = this.#open.get(path)
    if (directory === undefined || path === this.#root) return
    this.#open.delete(path)
    directory.forget()
  }

  close(): void {
    for (const directory of this.#open.values()) directory.forget()
    this.#open.clear()
  }

  #openOnce(path: string): Promise<OpenDirectory> {
    const known = this.#opening.get(path)
    if (known !== undefined) return known
    const opening = this.#make(path).finally(() => this.#opening.delete(path))
    this.#opening.set(path, opening)
    return opening
  }

  async #make(path: string): Promise<OpenDirectory> {
    for (;;) {
      const parent = await this.open(dirname(path))
      try {
        const directory = makeDirectory(path)
        if (directory !== null && (await isDurable(directory, parent))) {
          this.#open.set(path, directory)
          return directory
        }
        if (!parent.isAlive()) this.#bury(parent)
      } finally {
        parent.release()
      }
    }
  }

  /** A dead directory is made anew from its parent; nobody makes the root anew, which may be a missing disk. */
  #bury(directory: DurableDirectory): void {
    if (directory.path === this.#root) {
      throw new PawlError('STORE_UNAVAILABLE', `${this.#root} was removed`, { path: this.#root })
    }
    this.forget(directory.path)
  }

  #forgetOldest(): void {
    for (const [path, directory] of this.#open) {
      if (this.#open.size <= handlesMax) return
      if (directory.users === 0) this.forget(path)
    }
  }
}

/** True when the directory's entry is durable in a parent that still lives; else the directory is closed. */
async function isDurable(directory: OpenDirectory, parent: DurableDirectory): Promise<boolean> {
  let durable = false
  try {
    await parent.sync()
    durable = parent.isAlive()
  } finally {
    if (!durable) directory.forget()
  }
  return durable
}

/** Null when the directory, or its parent, was removed by somebody in the meantime. */
function makeDirectory(path: string): OpenDirectory | null {
  try {
    mkdirSync(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    if (errnoOf(error) !== 'EEXIST') throw error
  }
  try {
    return new OpenDirectory(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}
