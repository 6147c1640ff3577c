/**
 * Uploads in parts: what nobody sees until it is completed.
 *
 * Apart from creation because the files sink begins an upload in one process and completes it in another. The condition
 * that the name is free is on the request that completes.
 */
import { tryAgain } from '../shared/aws.ts'
import { type Bucket, checksumOf, deedOn } from './client.ts'

/** What is known of one part once it is up. */
export interface UploadedPart {
  readonly PartNumber: number
  readonly ETag: string | undefined
  readonly ChecksumCRC32: string
}

/** An upload that was begun. */
export interface Upload {
  readonly Bucket: string
  readonly Key: string
  readonly UploadId: string
}

/** May leave an upload behind when its answer is lost; the bucket's rule for unfinished uploads removes it. */
export async function beginUpload(bucket: Bucket, object: string): Promise<Upload> {
  const { sdk, client, name, prefix } = bucket
  const at = { Bucket: name, Key: prefix + object }
  const { UploadId } = await tryAgain(deedOn(bucket, 'begin to create', object, false), () =>
    client.send(
      new sdk.CreateMultipartUploadCommand({ ...at, ChecksumAlgorithm: 'CRC32', ChecksumType: 'FULL_OBJECT' }),
    ),
  )
  return { ...at, UploadId: UploadId! }
}

/** Writes one part; a repeat replaces it. */
export async function uploadPart(
  bucket: Bucket,
  upload: Upload,
  PartNumber: number,
  Body: Buffer,
): Promise<UploadedPart> {
  const { sdk, client } = bucket
  const known = { PartNumber, ChecksumCRC32: checksumOf(Body) }
  const deed = deedOn(bucket, 'write a part of', upload.Key, false)
  const { ETag } = await tryAgain(deed, () => client.send(new sdk.UploadPartCommand({ ...upload, ...known, Body })))
  return { ...known, ETag }
}

/** Makes the object of the parts, if its name is free. Errors are as they come. */
export function completeUpload(
  { sdk, client }: Bucket,
  upload: Upload,
  parts: readonly UploadedPart[],
  whole: { readonly ChecksumCRC32: string; readonly MpuObjectSize: number },
): Promise<unknown> {
  return client.send(
    new sdk.CompleteMultipartUploadCommand({
      ...upload,
      ...whole,
      IfNoneMatch: '*',
      ChecksumType: 'FULL_OBJECT',
      MultipartUpload: { Parts: [...parts] },
    }),
  )
}

/**
 * Frees the parts. Never says that it failed: what went wrong before is the error to tell, an upload that was completed
 * after all is not touched by this, and the bucket's rule for unfinished uploads removes what stays.
 */
export async function forgetUpload({ sdk, client }: Bucket, upload: Upload): Promise<void> {
  await client.send(new sdk.AbortMultipartUploadCommand(upload)).catch(() => {})
}
