/**
 * What calls to a cloud are billed by: plain numbers that add up.
 *
 * Counted where calls are made, told by the step that made them, summed by whoever wants a price.
 */

/** Calls and units of some span of work. */
export interface Usage {
  /** Requests by `service:Operation`, as in `s3:PutObject`; every try counts, as it does on a bill. */
  readonly calls: Readonly<Record<string, number>>
  /** DynamoDB: consumed request units, as the service itself reports them. */
  readonly readUnits: number
  readonly writeUnits: number
  /** Calls that were answered with "not now". */
  readonly throttles: number
}

/** Nothing was used. */
export const noUsage: Usage = Object.freeze({ calls: Object.freeze({}), readUnits: 0, writeUnits: 0, throttles: 0 })

/** Requests of S3 that are billed as reads; source: S3 pricing, requests and data retrievals. */
const storeReads = new Set(['s3:GetObject', 's3:HeadObject'])
/** Requests of S3 that are not billed. */
const storeFree = new Set(['s3:DeleteObject', 's3:DeleteObjects', 's3:AbortMultipartUpload'])

/** Requests of S3 in the two classes that it bills: PUT, POST and LIST are `writes`, GET and HEAD are `reads`. */
export function storeRequestsOf({ calls }: Pick<Usage, 'calls'>): { readonly writes: number; readonly reads: number } {
  let [writes, reads] = [0, 0]
  for (const [call, count] of Object.entries(calls)) {
    if (!call.startsWith('s3:') || storeFree.has(call)) continue
    if (storeReads.has(call)) reads += count
    else writes += count
  }
  return { writes, reads }
}
