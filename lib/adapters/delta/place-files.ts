/**
 * Putting the data files of a committed epoch into a table, under the names that they were staged with.
 *
 * Nobody sees them before the log names them. Until then a clean-up of the table may take them: so each promotion puts
 * them there again, from the store, unless the very same bytes are there.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { ObjectRef } from '../../model/head.ts'
import type { Store } from '../../ports/store.ts'
import { readStaged, sha256Of } from '../shared/staged-objects.ts'
import type { TableFiles } from '../shared/table-files.ts'

/** A file to be put, and the object that holds it. */
export interface PlacedFile {
  readonly name: string
  readonly object: ObjectRef
}

const atOnce = 4
const triesMax = 3

/** Puts all files. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`, `FILE_FOREIGN` and what store and files throw. */
export async function placeFiles(files: TableFiles, store: Store, placed: readonly PlacedFile[]): Promise<void> {
  const left = placed.values()
  const work = async () => {
    for (const file of left) await placeFile(files, store, file)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, placed.length) }, work))
}

async function placeFile(files: TableFiles, store: Store, { name, object }: PlacedFile): Promise<void> {
  const bytes = await readStaged(store, object).catch(async (error: unknown) => {
    const gone = isPawlError(error) && error.code === 'OBJECT_MISSING'
    if (gone && (await isThere(files, name, object))) return null
    throw error
  })
  for (let tries = 1; bytes !== null; tries++) {
    try {
      if ((await files.create(name, bytes)) === 'created' || (await isThere(files, name, object))) return
      const path = `${files.location}/${name}`
      throw new PawlError('FILE_FOREIGN', path, { path, sha256Expected: object.sha256 })
    } catch (error) {
      if (tries >= triesMax || !isPawlError(error) || error.code !== 'UNKNOWN_RESULT') throw error
    }
  }
}

async function isThere(files: TableFiles, name: string, object: ObjectRef): Promise<boolean> {
  const found = await files.read(name)
  return found !== null && sha256Of([found]) === object.sha256
}
