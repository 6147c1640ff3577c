/**
 * A store in a bucket of S3.
 *
 * S3 is strongly consistent: a read or listing sees every object whose creation was answered. Listings come in the
 * order of the bytes of whole names. Nothing here replaces an object, so a bucket with versions works as one without.
 * What was read is compared with the checksum that S3 keeps; a damaged answer is read again before it is called
 * `OBJECT_DAMAGED`.
 */
import { type ErrorDetails, PawlError } from '../../model/errors.ts'
import type { Store, StoredObject } from '../../ports/store.ts'
import { answerOf, tryAgain, verdictOf } from '../shared/aws.ts'
import { assertByteRange, assertObjectName, assertObjectPrefix, isObjectName } from '../shared/object-names.ts'
import { type Bucket, checksumOf, deedOn, lazyBucket, type S3StoreOptions } from './client.ts'
import { createObject } from './create.ts'

export type { S3StoreOptions } from './client.ts'

/** Names that one DeleteObjects takes. */
const deletesMax = 1_000
/** Reads of an object that arrives damaged. */
const readsMax = 3

/**
 * The store in a bucket, below a prefix. No call is made before it is used.
 *
 * Calls throw `STORE_UNAVAILABLE`, for a write whose outcome is open `UNKNOWN_RESULT`, and `OBJECT_DAMAGED`,
 * `AWS_ACCESS_DENIED`, `AWS_RESOURCE_MISSING`, `PACKAGE_MISSING`.
 */
export function s3Store(options: S3StoreOptions): Store {
  const bucket = lazyBucket(options)
  return {
    async create(name, chunks) {
      assertObjectName(name)
      return createObject(await bucket.open(), name, chunks)
    },
    async read(name, range) {
      assertObjectName(name)
      if (range !== undefined) assertByteRange(range)
      const opened = await bucket.open()
      if (range !== undefined && range.start === range.end) return emptyRange(opened, name)
      return readObject(opened, name, range)
    },
    list: (prefix) => listObjects(bucket.open, prefix),
    async delete(names) {
      for (const name of names) assertObjectName(name)
      const opened = await bucket.open()
      const unique = [...new Set(names)]
      for (let at = 0; at < unique.length; at += deletesMax) {
        await deleteObjects(opened, unique.slice(at, at + deletesMax))
      }
    },
    close: bucket.close,
  }
}

/** S3 knows no range of no bytes: asks only whether the object is there. */
async function emptyRange(bucket: Bucket, object: string): Promise<Buffer | null> {
  const { sdk, client, name, prefix } = bucket
  return tryAgain(deedOn(bucket, 'read', object, false), async () => {
    try {
      await client.send(new sdk.HeadObjectCommand({ Bucket: name, Key: prefix + object }))
      return Buffer.alloc(0)
    } catch (error) {
      if (answerOf(error).status === 404 && verdictOf(error) === 'refused') return null
      throw error
    }
  })
}

interface ByteRange {
  readonly start: number
  readonly end: number
}

/** The object below the bucket's prefix, or bytes of it; null when there is none. Throws `OBJECT_DAMAGED`. */
export async function readObject(bucket: Bucket, object: string, range?: ByteRange): Promise<Buffer | null> {
  const deed = deedOn(bucket, 'read', object, false)
  for (let reads = 1; ; reads++) {
    const got = await tryAgain(deed, () => getObject(bucket, object, range))
    if (got === null || got.expected === null || checksumOf(got.bytes) === got.expected) return got?.bytes ?? null
    if (reads < readsMax) continue
    const details: ErrorDetails = { object, bucket: bucket.name, bytes: got.bytes.length, crc32: got.expected }
    throw new PawlError('OBJECT_DAMAGED', `${object} in bucket ${bucket.name}`, details)
  }
}

/** The bytes with the checksum that they must have; a part of an object has none. */
async function getObject(
  { sdk, client, name, prefix }: Bucket,
  object: string,
  range: ByteRange | undefined,
): Promise<{ readonly bytes: Buffer; readonly expected: string | null } | null> {
  const at = { Bucket: name, Key: prefix + object }
  try {
    const Range = range && `bytes=${range.start}-${range.end - 1}`
    const { Body, ChecksumCRC32, ChecksumType, ContentLength } = await client.send(
      new sdk.GetObjectCommand({ ...at, Range }),
    )
    const bytes = await bytesOf(Body as AsyncIterable<Uint8Array>)
    // A connection that ends early without saying so.
    if (ContentLength !== undefined && bytes.length !== ContentLength) {
      throw Object.assign(new Error(`${bytes.length} of ${ContentLength} bytes`), { name: 'TimeoutError' })
    }
    const whole = range === undefined && ChecksumType === 'FULL_OBJECT'
    return { bytes, expected: whole ? (ChecksumCRC32 ?? null) : null }
  } catch (error) {
    const answer = answerOf(error)
    if (answer.name === 'NoSuchKey') return null
    // The object ends before the range begins.
    if (answer.status === 416) return { bytes: Buffer.alloc(0), expected: null }
    throw error
  }
}

async function bytesOf(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function* listObjects(open: () => Promise<Bucket>, within: string): AsyncGenerator<StoredObject> {
  assertObjectPrefix(within)
  const bucket = await open()
  const { sdk, client, name, prefix } = bucket
  let token: string | undefined
  do {
    const page = await tryAgain(deedOn(bucket, 'list', within, false), () =>
      client.send(new sdk.ListObjectsV2Command({ Bucket: name, Prefix: prefix + within, ContinuationToken: token })),
    )
    for (const { Key = '', Size = 0 } of page.Contents ?? []) {
      const found = Key.slice(prefix.length)
      if (isObjectName(found)) yield { name: found, bytes: Size }
    }
    token = page.IsTruncated ? page.NextContinuationToken : undefined
  } while (token !== undefined)
}

/** Deletes a batch. Some names may fail alone; those are tried again. */
async function deleteObjects(bucket: Bucket, names: readonly string[]): Promise<void> {
  const { sdk, client, name, prefix } = bucket
  let left = names
  await tryAgain(deedOn(bucket, `delete ${names.length} objects, the first`, names[0], false), async () => {
    const Objects = left.map((object) => ({ Key: prefix + object }))
    const { Errors = [] } = await client.send(
      new sdk.DeleteObjectsCommand({ Bucket: name, Delete: { Objects, Quiet: true } }),
    )
    const failed = Errors.filter(({ Code }) => Code !== 'NoSuchKey')
    if (failed.length === 0) return
    left = failed.map(({ Key = '' }) => Key.slice(prefix.length))
    throw failureOf(failed)
  })
}

/** What S3 says of single names inside an answer of 200, as the error that the call would have ended with. */
function failureOf(failed: readonly { Key?: string; Code?: string; Message?: string }[]): Error {
  const graveFirst = failed.find(({ Code }) => Code !== 'InternalError' && Code !== 'SlowDown') ?? failed[0]
  const { Key = '', Code = '', Message = '' } = graveFirst
  const status = Code === 'InternalError' || Code === 'SlowDown' ? 503 : 403
  return Object.assign(new Error(`${Key}: ${Message}`), { name: Code, $metadata: { httpStatusCode: status } })
}
