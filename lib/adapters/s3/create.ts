/**
 * Creating an object if its name is free, with `If-None-Match: *`.
 *
 * 412 means the name is taken; 409 ConditionalRequestConflict means that nobody knows yet and nothing was written, so
 * it is tried again. After a try without an answer, 412 may be our own success: that is thrown as `UNKNOWN_RESULT`
 * and never reported as `exists`. Large objects go up in parts that nobody sees; the condition is on the request that
 * completes them.
 */
import { PawlError } from '../../model/errors.ts'
import { answerOf, type Deed, type Tries, tryAgain, type Verdict } from '../shared/aws.ts'
import { type Bucket, checksumOf, deedOn } from './client.ts'
import { beginUpload, completeUpload, forgetUpload, type Upload, type UploadedPart, uploadPart } from './upload.ts'

/** Only this 409 is a conflict of conditions; another would be one of the bucket itself. */
const conflict = 'ConditionalRequestConflict'
/** Parts on their way at once. */
const partsAtOnce = 4

const judge = (error: unknown): Verdict | null => (answerOf(error).name === conflict ? 'undone' : null)
const isTaken = (error: unknown) => answerOf(error).status === 412

/** Creates the object; `chunks` are concatenated. Throws `UNKNOWN_RESULT`, `STORE_UNAVAILABLE`, `AWS_…`. */
export function createObject(
  bucket: Bucket,
  name: string,
  chunks: readonly Uint8Array[],
): Promise<'created' | 'exists'> {
  const deed = { ...deedOn(bucket, 'create', name, true), judge }
  if (sizeOf(chunks) > bucket.partBytes) return createInParts(bucket, deed, chunks, name)
  const body = Buffer.concat(chunks)
  return tryAgain(deed, (tries) => unlessTaken(deed, tries, () => putObject(bucket, name, body)))
}

const sizeOf = (chunks: readonly Uint8Array[]) => chunks.reduce((sum, chunk) => sum + chunk.length, 0)

async function unlessTaken(deed: Deed, tries: Tries, write: () => Promise<unknown>): Promise<'created' | 'exists'> {
  try {
    await write()
    return 'created'
  } catch (error) {
    if (!isTaken(error)) throw error
    if (!tries.unclear) return 'exists'
    throw new PawlError('UNKNOWN_RESULT', `${deed.text}: an earlier try may have created it`, {}, error)
  }
}

function putObject({ sdk, client, name, prefix }: Bucket, object: string, body: Buffer): Promise<unknown> {
  return client.send(
    new sdk.PutObjectCommand({
      Bucket: name,
      Key: prefix + object,
      Body: body,
      IfNoneMatch: '*',
      ChecksumCRC32: checksumOf(body),
    }),
  )
}

/** One multipart upload after another, until one is completed or refused: a conflict ends an upload. */
function createInParts(
  bucket: Bucket,
  deed: Deed,
  chunks: readonly Uint8Array[],
  object: string,
): Promise<'created' | 'exists'> {
  const whole = { ChecksumCRC32: checksumOf(...chunks), MpuObjectSize: sizeOf(chunks) }
  return tryAgain(deed, async (tries) => {
    const upload = await beginUpload(bucket, object)
    let created = false
    try {
      const parts = await uploadParts(bucket, upload, chunks)
      const answer = await unlessTaken(deed, tries, () => completeUpload(bucket, upload, parts, whole))
      created = answer === 'created'
      return answer
    } finally {
      if (!created) await forgetUpload(bucket, upload)
    }
  })
}

async function uploadParts(
  bucket: Bucket,
  upload: Upload,
  chunks: readonly Uint8Array[],
): Promise<readonly UploadedPart[]> {
  const uploaded: UploadedPart[] = []
  const parts = partsOf(chunks, bucket.partBytes)
  let next = 1
  const work = async () => {
    for (let part = parts.next(); !part.done; part = parts.next()) {
      uploaded.push(await uploadPart(bucket, upload, next++, part.value))
    }
  }
  // A part that comes after the upload was given up would stay: all have ended before anybody sees a failure.
  const ended = await Promise.allSettled(
    Array.from({ length: partsAtOnce }, () => work().finally(() => parts.return())),
  )
  for (const end of ended) if (end.status === 'rejected') throw end.reason
  return uploaded.sort((a, b) => a.PartNumber - b.PartNumber)
}

/** The chunks in a row, cut into equal parts; the last may be shorter. Each is copied when it is asked for. */
function* partsOf(chunks: readonly Uint8Array[], partBytes: number): Generator<Buffer, void> {
  let slices: Uint8Array[] = []
  let bytes = 0
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const slice = chunk.subarray(at, at + partBytes - bytes)
      slices.push(slice)
      bytes += slice.length
      at += slice.length
      if (bytes < partBytes) continue
      yield Buffer.concat(slices)
      slices = []
      bytes = 0
    }
  }
  if (bytes > 0) yield Buffer.concat(slices)
}
