/**
 * The files of a lake table below a prefix of a bucket.
 *
 * Creation is conditional (`If-None-Match`), as for the store's objects: other engines that write the same log must
 * write conditionally too, which all do that support S3 without a lock table.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import { type AwsOptions, tryAgain } from '../shared/aws.ts'
import type { TableFiles } from '../shared/table-files.ts'
import { type Bucket, checksumOf, deedOn, lazyBucket } from './client.ts'
import { createObject } from './create.ts'
import { readObject } from './store.ts'

/** How the bucket is reached; what is absent comes from the environment, as for any program of AWS. */
export interface S3TableOptions extends AwsOptions {
  /** Bucket in the path and not in the host name, as emulators want it. */
  readonly forcePathStyle?: boolean
}

const form = /^s3a?:\/\/([^/]+)(?:\/+(.*?))?\/*$/

/** The table at `s3://bucket/prefix`. Throws `PIPELINE_INVALID` for another form. */
export function s3TableFiles(location: string, options: S3TableOptions = {}): TableFiles {
  const [, name, prefix = ''] = form.exec(location) ?? []
  if (name === undefined) throw new PawlError('PIPELINE_INVALID', `${location} is not of the form s3://bucket/prefix`)
  const bucket = lazyBucket({ ...options, bucket: name, prefix: prefix === '' ? '' : `${prefix}/` })
  return {
    location: prefix === '' ? `s3://${name}` : `s3://${name}/${prefix}`,
    create: (file, bytes) => asSink(async () => createObject(await bucket.open(), file, [bytes])),
    replace: (file, bytes) => asSink(async () => replaceObject(await bucket.open(), file, bytes)),
    read: (file) => asSink(async () => readObject(await bucket.open(), file)),
    list: (folder, after) => asSink(async () => listFolder(await bucket.open(), folder, after)),
    close: bucket.close,
  }
}

/** A bucket that does not answer is the sink here, not the store of the pipeline. */
async function asSink<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!isPawlError(error) || error.code !== 'STORE_UNAVAILABLE') throw error
    throw new PawlError('SINK_UNAVAILABLE', `cannot reach the table (${error.message})`, error.details, error)
  }
}

async function replaceObject(bucket: Bucket, file: string, bytes: Uint8Array): Promise<void> {
  const { sdk, client, name, prefix } = bucket
  const put = { Bucket: name, Key: prefix + file, Body: bytes, ChecksumCRC32: checksumOf(bytes) }
  await tryAgain(deedOn(bucket, 'write', file, true), () => client.send(new sdk.PutObjectCommand(put)))
}

async function listFolder(bucket: Bucket, folder: string, after: string): Promise<string[]> {
  const { sdk, client, name, prefix } = bucket
  const within = `${prefix}${folder}/`
  const listing = { Bucket: name, Prefix: within, Delimiter: '/', StartAfter: within + after }
  const names: string[] = []
  let token: string | undefined
  do {
    const page = await tryAgain(deedOn(bucket, 'list', folder, false), () =>
      client.send(new sdk.ListObjectsV2Command({ ...listing, ContinuationToken: token })),
    )
    for (const { Key = '' } of page.Contents ?? []) if (Key > within + after) names.push(Key.slice(within.length))
    token = page.IsTruncated ? page.NextContinuationToken : undefined
  } while (token !== undefined)
  return names
}
