/**
 * The marker of a lane as an object that is replaced by compare-and-set on its ETag.
 *
 * `If-None-Match: *` makes it, `If-Match` moves it: 412 means that somebody else was there, 409 that nobody knows yet and
 * nothing was written. After a try without an answer the object is read back. A marker that a person resets stays as an
 * object that says so, since a deletion could not be conditional. JSON, version 1.
 */
import { PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import { answerOf, type Deed, tryAgain } from '../shared/aws.ts'
import { sameMarker } from '../shared/markers.ts'
import { type Bucket, checksumOf, deedOn } from './client.ts'

/** What is there, and by what it is known; an ETag of null: no object. */
export interface FoundMarker {
  readonly marker: Marker | null
  readonly etag: string | null
}

/** A deed of the sink on one of its objects; only this 409 is one of conditions. */
export function filesDeed(bucket: Bucket, verb: string, object: string, writes: boolean): Deed {
  return {
    ...deedOn(bucket, verb, object, writes),
    unavailable: 'SINK_UNAVAILABLE',
    judge: (error) => (answerOf(error).name === 'ConditionalRequestConflict' ? 'undone' : null),
  }
}

/** The marker object as it is now. Throws `MARKER_UNKNOWN`. */
export async function findMarker(bucket: Bucket, object: string): Promise<FoundMarker> {
  const { sdk, client, name, prefix } = bucket
  return tryAgain(filesDeed(bucket, 'read', object, false), async () => {
    try {
      const { Body, ETag } = await client.send(new sdk.GetObjectCommand({ Bucket: name, Key: prefix + object }))
      return { marker: parseMarker((await Body?.transformToString()) ?? '', object), etag: ETag ?? null }
    } catch (error) {
      if (answerOf(error).name === 'NoSuchKey') return { marker: null, etag: null }
      throw error
    }
  })
}

function parseMarker(text: string, object: string): Marker | null {
  try {
    const { version, marker } = JSON.parse(text) as { version?: number; marker: Marker | null }
    if (version !== 1) throw new Error(`version ${version}`)
    if (marker === null) return null
    const { incarnation, epoch, hash } = marker
    return { incarnation, epoch, hash }
  } catch (error) {
    throw new PawlError('MARKER_UNKNOWN', `${object} holds no marker`, { object }, error)
  }
}

/** Puts `next` in the place of what was found; answers with what is there then. */
export async function moveMarker(
  bucket: Bucket,
  object: string,
  { etag }: FoundMarker,
  next: Marker | null,
): Promise<'moved' | FoundMarker> {
  const { sdk, client, name, prefix } = bucket
  const Body = Buffer.from(`${JSON.stringify({ version: 1, marker: next })}\n`)
  const condition = etag === null ? { IfNoneMatch: '*' } : { IfMatch: etag }
  const put = { Bucket: name, Key: prefix + object, Body, ChecksumCRC32: checksumOf(Body), ...condition }
  return tryAgain(filesDeed(bucket, 'move marker', object, true), async ({ unclear }) => {
    try {
      await client.send(new sdk.PutObjectCommand(put))
      return 'moved'
    } catch (error) {
      const { name: code, status } = answerOf(error)
      if (status !== 412 && code !== 'NoSuchKey') throw error
      const found = await findMarker(bucket, object)
      return unclear && sameMarker(found.marker, next) ? 'moved' : found
    }
  })
}
