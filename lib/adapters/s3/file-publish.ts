/**
 * Making staged files visible: each by completing its upload, or by one request from the store.
 *
 * A file appears under its own name and never replaces one. When an upload is gone, or the answer to its completion was,
 * the object under the name is compared by size and CRC-32; if there is none, the file is uploaded again from the store.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { ObjectRef } from '../../model/head.ts'
import type { Store } from '../../ports/store.ts'
import { answerOf, tryAgain, verdictOf } from '../shared/aws.ts'
import { readStaged } from '../shared/staged-objects.ts'
import { type Bucket, checksumOf } from './client.ts'
import { createObject } from './create.ts'
import type { StagedFile } from './file-form.ts'
import { filesDeed } from './file-marker.ts'
import { readObject } from './store.ts'
import { completeUpload } from './upload.ts'

/** A file of a lane with the objects of the store that it consists of. */
export interface LaneFile {
  readonly file: StagedFile
  readonly objects: readonly ObjectRef[]
}

/**
 * Makes the file visible unless it is. `isMine` is asked before a file is made that an earlier try may have made, which
 * a reader may have taken away since; false when it is not. Throws `FILE_FOREIGN`, `OBJECT_MISSING`, `OBJECT_DAMAGED`.
 */
export async function publishFile(
  bucket: Bucket,
  store: Store,
  { file, objects }: LaneFile,
  isMine: () => Promise<boolean>,
): Promise<boolean> {
  if (file.upload !== null) {
    if ((await complete(bucket, file)) === 'completed' || (await isThere(bucket, file))) return true
    if (!(await isMine())) return false
  }
  const chunks: Buffer[] = []
  for (const ref of objects) chunks.push(await readStaged(store, ref))
  await createFile(bucket, file, chunks)
  return true
}

async function complete(bucket: Bucket, file: StagedFile): Promise<'completed' | 'unclear'> {
  const { id, parts } = file.upload!
  const upload = { Bucket: bucket.name, Key: bucket.prefix + file.name, UploadId: id }
  const whole = { ChecksumCRC32: file.crc32, MpuObjectSize: file.bytes }
  return tryAgain(filesDeed(bucket, 'complete', file.name, true), async () => {
    try {
      await completeUpload(bucket, upload, parts, whole)
      return 'completed'
    } catch (error) {
      const { name } = answerOf(error)
      // The name is taken, the upload is gone, or the bucket has lost a part of it: what counts is what is there.
      if (name !== 'ConditionalRequestConflict' && verdictOf(error) === 'refused') return 'unclear'
      throw error
    }
  })
}

async function createFile(bucket: Bucket, file: StagedFile, chunks: readonly Buffer[]): Promise<void> {
  try {
    if ((await createObject(bucket, file.name, chunks)) === 'created' || (await isThere(bucket, file))) return
  } catch (error) {
    if (!isPawlError(error) || error.code !== 'UNKNOWN_RESULT' || !(await isThere(bucket, file)))
      throw unavailable(error)
    return
  }
  throw new PawlError('SINK_UNAVAILABLE', `${file.name} in bucket ${bucket.name} was there and is gone`)
}

/** Creation is the store's, whose bucket is not at fault here. */
function unavailable(error: unknown): unknown {
  if (!isPawlError(error) || error.code !== 'STORE_UNAVAILABLE') return error
  return new PawlError('SINK_UNAVAILABLE', error.message, error.details, error)
}

/** True when the object under the file's name is the file, false when there is none. Throws `FILE_FOREIGN`. */
async function isThere(bucket: Bucket, { name: object, bytes, crc32 }: StagedFile): Promise<boolean> {
  const { sdk, client, name, prefix } = bucket
  const at = { Bucket: name, Key: prefix + object, ChecksumMode: 'ENABLED' as const }
  const found = await tryAgain(filesDeed(bucket, 'look at', object, false), async () => {
    try {
      return await client.send(new sdk.HeadObjectCommand(at))
    } catch (error) {
      if (answerOf(error).status === 404 && verdictOf(error) === 'refused') return null
      throw error
    }
  })
  if (found === null) return false
  const { ContentLength, ChecksumCRC32, ChecksumType } = found
  const known = ChecksumCRC32 !== undefined && ChecksumType !== 'COMPOSITE'
  const sum =
    known || ContentLength !== bytes ? ChecksumCRC32 : checksumOf((await readObject(bucket, object)) ?? Buffer.alloc(0))
  if (ContentLength === bytes && sum === crc32) return true
  const details = { bucket: name, object: prefix + object, bytes: ContentLength ?? null, bytesExpected: bytes }
  throw new PawlError('FILE_FOREIGN', `s3://${name}/${prefix}${object}`, details)
}
