/**
 * The S3 client, loaded and made when the first call needs it.
 *
 * `Bucket` is what the files of this folder share: the client, the SDK's commands, and where names lie. Whole objects
 * carry a CRC-32 that S3 checks when it takes them and returns when it gives them (Node computes it natively; the
 * hashes of the manifest are SHA-256 and checked above the store).
 */
import { crc32 } from 'node:zlib'
import { type AwsOptions, clientConfig, type Deed, loadClient } from '../shared/aws.ts'
import { meterCalls } from '../shared/meter.ts'

type Sdk = typeof import('@aws-sdk/client-s3')

/** Where a store's objects lie. */
export interface S3StoreOptions extends AwsOptions {
  readonly bucket: string
  /** Before every name, as in `pawl/`; none unless said otherwise. */
  readonly prefix?: string
  /** Bucket in the path and not in the host name, as emulators want it. */
  readonly forcePathStyle?: boolean
  /** Objects above this are written in parts of it; 16 MiB unless said otherwise, at least 5 MiB. */
  readonly partBytes?: number
}

/** A bucket that is open. */
export interface Bucket {
  readonly sdk: Sdk
  readonly client: InstanceType<Sdk['S3Client']>
  readonly name: string
  readonly prefix: string
  readonly partBytes: number
}

/** Opens the bucket on first use and keeps it. */
export function lazyBucket(options: S3StoreOptions): { open(): Promise<Bucket>; close(): Promise<void> } {
  let opened: Promise<Bucket> | null = null
  const open = async (): Promise<Bucket> => {
    const sdk = await loadClient('@aws-sdk/client-s3', () => import('@aws-sdk/client-s3'))
    const client = new sdk.S3Client({
      ...clientConfig(options),
      ...(options.forcePathStyle === undefined ? {} : { forcePathStyle: options.forcePathStyle }),
      // Checksums are made and compared here, once.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    })
    askForChecksums(client)
    meterCalls(client, 's3', options.meter)
    const { bucket, prefix = '', partBytes = 16 * 1024 * 1024 } = options
    return { sdk, client, name: bucket, prefix, partBytes }
  }
  return {
    open() {
      opened ??= open()
      return opened
    },
    async close() {
      const bucket = await opened?.catch(() => null)
      bucket?.client.destroy()
      opened = null
    },
  }
}

/**
 * Asks S3 for the checksum of whole objects by the header alone. The SDK's own parameter makes it check the stream as
 * well, with an error that nothing but its text tells from others.
 */
function askForChecksums(client: Bucket['client']): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      (args) => {
        const { headers = {} } = args.request as { headers?: Record<string, string> }
        if (commandName === 'GetObjectCommand' && headers.range === undefined) {
          headers['x-amz-checksum-mode'] = 'ENABLED'
        }
        return next(args)
      },
    { step: 'build', name: 'askForChecksums' },
  )
}

/** A deed on an object of the bucket. */
export function deedOn({ name }: Bucket, verb: string, object: string, writes: boolean): Deed {
  return { text: `${verb} ${object} in bucket ${name}`, writes, unavailable: 'STORE_UNAVAILABLE' }
}

/** CRC-32 of the chunks in a row, as S3 writes it: four bytes, base64. */
export function checksumOf(...chunks: readonly Uint8Array[]): string {
  const sum = Buffer.allocUnsafe(4)
  sum.writeUInt32BE(chunks.reduce((crc, chunk) => crc32(chunk, crc), 0))
  return sum.toString('base64')
}
