/**
 * Which marker each lane of a pipeline must show, by the ledger alone: what a lost or foreign marker is replaced by.
 *
 * Reads:  history and the manifest of the newest promoted epoch. Writes: nothing.
 * Safe to repeat because: it only reads. What is committed and not yet promoted is left out, so that its promotion
 * finds its predecessor.
 */
import { PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import type { Manifest, Marker } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Store } from '../ports/store.ts'
import { unseal } from './seal.ts'
import { markersAfter } from './verify-manifest.ts'

/** The marker that a lane must show. */
export type DueMarker = (sink: string, lane: number) => Marker

/** Throws `HISTORY_MISSING`, `OBJECT_MISSING`, `MANIFEST_DAMAGED`. */
export async function recoverMarkers(ledger: Ledger, store: Store, head: Head): Promise<DueMarker> {
  const { pipeline, incarnation, promotedThrough } = head
  const item = async (epoch: number) => {
    const found = await ledger.history(pipeline, epoch)
    if (found === null) throw new PawlError('HISTORY_MISSING', `epoch ${epoch} of ${pipeline}`, { epoch })
    return found
  }
  const genesis = await item(0)
  const newest = await item(promotedThrough)
  const manifest = await unseal<Manifest>(store, newest.manifest)
  const markers = markersAfter(manifest, newest.manifest.sha256)
  return (sink, lane) => {
    const { epoch, hash } = markers.get(laneName(sink, lane)) ?? { epoch: 0, hash: genesis.manifest.sha256 }
    return { incarnation, epoch, hash }
  }
}
