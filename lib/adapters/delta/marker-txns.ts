/**
 * A lane's marker as transaction identifiers of the log.
 *
 * `txn` actions are the only thing that a table keeps for an application, through checkpoints and the clean-up of old
 * entries, and that no other writer conflicts with; they hold an id and an int64. So a marker is nine of them, written in
 * one entry with the rows: the epoch under the lane's id, and incarnation and manifest hash in words of 52 bits, which
 * readers that take numbers for doubles keep as well. A marker that a person removed has epoch -1, since a log forgets
 * no transaction; without `lastUpdated` no retention drops one. Version 1 of the layout, which stands in the ids.
 */
import { PawlError } from '../../model/errors.ts'
import type { Marker } from '../../model/manifest.ts'
import type { Txn } from './actions.ts'

/** Whose marker. */
export interface LaneIdentity {
  readonly stage: string
  readonly pipeline: string
  readonly sink: string
  readonly lane: number
}

const digitsPerWord = 13
const incarnationDigits = 32
const hashDigits = 64
const hexForm = /^[0-9a-f]+$/

/** The `appId` under which a lane's epoch stands. */
export function laneAppId({ stage, pipeline, sink, lane }: LaneIdentity): string {
  return `pawl/1/${stage}/${pipeline}/${sink}/${lane}`
}

/** The transactions that say a marker; null: that there is none. */
export function markerTxns(identity: LaneIdentity, marker: Marker | null): Txn[] {
  const appId = laneAppId(identity)
  if (marker === null) return [{ appId, version: -1n }]
  return [
    { appId, version: BigInt(marker.epoch) },
    ...words(`${appId}/incarnation`, marker.incarnation, incarnationDigits),
    ...words(`${appId}/manifest`, marker.hash, hashDigits),
  ]
}

/** The marker that a table's transactions say; null when there is none. Throws `MARKER_UNKNOWN` for half of one. */
export function markerOf(identity: LaneIdentity, txns: ReadonlyMap<string, bigint>): Marker | null {
  const appId = laneAppId(identity)
  const epoch = txns.get(appId)
  if (epoch === undefined || epoch < 0n) return null
  return {
    incarnation: joined(`${appId}/incarnation`, txns, incarnationDigits),
    epoch: Number(epoch),
    hash: joined(`${appId}/manifest`, txns, hashDigits),
  }
}

function words(id: string, hex: string, digits: number): Txn[] {
  if (hex.length !== digits || !hexForm.test(hex)) {
    throw new PawlError('ASSERTION_FAILED', `${id} of a marker is ${JSON.stringify(hex)}, not ${digits} hex digits`)
  }
  return starts(digits).map((at, word) => ({
    appId: `${id}/${word}`,
    version: BigInt(`0x${hex.slice(at, at + digitsPerWord)}`),
  }))
}

function joined(id: string, txns: ReadonlyMap<string, bigint>, digits: number): string {
  const parts = starts(digits).map((at, word) => {
    const version = txns.get(`${id}/${word}`)
    if (version === undefined) throw new PawlError('MARKER_UNKNOWN', `transaction ${id}/${word} is missing in the log`)
    return version.toString(16).padStart(Math.min(digitsPerWord, digits - at), '0')
  })
  return parts.join('')
}

function starts(digits: number): number[] {
  return Array.from({ length: Math.ceil(digits / digitsPerWord) }, (_, word) => word * digitsPerWord)
}
