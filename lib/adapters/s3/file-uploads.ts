/**
 * Uploads that attempts left behind: found by name, forgotten unless a retained epoch refers to them.
 *
 * Only files of this sink and incarnation are looked at; what else is uploaded below the prefix is somebody else's.
 */
import { answerOf, tryAgain } from '../shared/aws.ts'
import type { Bucket } from './client.ts'
import { type FilesHandle, isFileOf } from './file-form.ts'
import { filesDeed } from './file-marker.ts'

/** Names of unfinished uploads: upload id and key. */
export async function listUploads(bucket: Bucket, sink: string, incarnation: string): Promise<readonly string[]> {
  const { sdk, client, name, prefix } = bucket
  const found: string[] = []
  let at: { KeyMarker?: string; UploadIdMarker?: string } = {}
  for (let more = true; more; ) {
    const page = await tryAgain(filesDeed(bucket, 'list uploads of', prefix, false), () =>
      client.send(new sdk.ListMultipartUploadsCommand({ Bucket: name, Prefix: prefix, ...at })),
    )
    for (const { Key = '', UploadId = '' } of page.Uploads ?? [])
      if (isFileOf(Key, sink, incarnation)) found.push(`${UploadId} ${Key}`)
    const { NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page
    more = page.IsTruncated === true && KeyMarker !== undefined
    at = {
      ...(KeyMarker === undefined ? {} : { KeyMarker }),
      ...(UploadIdMarker === undefined ? {} : { UploadIdMarker }),
    }
  }
  return found
}

/** Forgets those of the listed uploads that no handle refers to. */
export async function sweepUploads(
  bucket: Bucket,
  listed: readonly string[],
  kept: readonly FilesHandle[],
): Promise<void> {
  const { sdk, client, name: Bucket } = bucket
  const ids = new Set(kept.flatMap(({ files }) => files.flatMap(({ upload }) => (upload === null ? [] : [upload.id]))))
  for (const one of listed) {
    const UploadId = one.slice(0, one.indexOf(' '))
    const Key = one.slice(UploadId.length + 1)
    if (ids.has(UploadId)) continue
    await tryAgain(filesDeed(bucket, 'forget an upload of', Key, false), async () => {
      try {
        await client.send(new sdk.AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
      } catch (error) {
        if (answerOf(error).status !== 404 || answerOf(error).name === 'NoSuchBucket') throw error
      }
    })
  }
}
