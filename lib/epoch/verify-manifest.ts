/**
 * Verify one link of the chain: does a manifest follow from the one before it?
 *
 * Reads:  two manifests and their places in the history. Writes: nothing. Pure; everything that it finds is a
 * sentence about one epoch. Apart from `verify` because these are the rules of the chain, and that is the walk.
 */
import type { HistoryItem } from '../model/head.ts'
import type { LaneMarker, Manifest, Marker } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import { rangeSpan } from '../model/offsets.ts'

/** What contradicts itself within one manifest, as the history names it. */
export function innerContradictions(manifest: Manifest, item: HistoryItem, pipeline: string): string[] {
  return [
    ...unless(manifest.epoch === item.epoch, `its manifest is of epoch ${manifest.epoch}`),
    ...unless(manifest.pipeline === pipeline, `its manifest is of pipeline ${manifest.pipeline}`),
    ...unless(manifest.attempt === item.attempt, `its manifest is of attempt ${manifest.attempt}`),
    ...unless(manifest.generation === item.generation, `its manifest is of generation ${manifest.generation}`),
    ...manifest.progress.flatMap((at) =>
      unless(BigInt(at.start) <= BigInt(at.end), `${at.source}/${at.partition} ends before it starts`),
    ),
    ...countContradictions(manifest),
    ...snapshotContradictions(manifest),
  ]
}

/** What contradicts between a manifest and its parent. */
export function linkContradictions(manifest: Manifest, parent: Manifest, parentItem: HistoryItem): string[] {
  const { parent: link } = manifest
  const names = link !== null && link.name === parentItem.manifest.name && link.sha256 === parentItem.manifest.sha256
  const genesis = parent.epoch === 0 ? parentItem.manifest.sha256 : parent.genesis
  return [
    ...unless(names, `its parent is not the manifest of epoch ${parentItem.epoch} in the history`),
    ...unless(manifest.incarnation === parent.incarnation, `it is of incarnation ${manifest.incarnation}`),
    ...unless(manifest.genesis === genesis, 'it names another genesis manifest'),
    ...unless(manifest.generation >= parent.generation, `its generation ${manifest.generation} is lower than before`),
    ...unless(!falls(parent.watermarkMs, manifest.watermarkMs), 'its watermark is lower than before'),
    ...progressContradictions(manifest, parent),
    ...stateContradictions(manifest, parent),
    ...markerContradictions(manifest, markersAfter(parent, parentItem.manifest.sha256)),
  ]
}

/** The marker of each lane once the epoch of `manifest` is promoted, by lane name. */
export function markersAfter(manifest: Manifest, sha256: string): ReadonlyMap<string, LaneMarker> {
  const markers = new Map(manifest.laneMarkers.map((marker) => [laneName(marker.sink, marker.lane), marker]))
  for (const { sink, lane } of manifest.committables) {
    markers.set(laneName(sink, lane), { sink, lane, epoch: manifest.epoch, hash: sha256 })
  }
  return markers
}

function progressContradictions(manifest: Manifest, parent: Manifest): string[] {
  const now = new Map(manifest.progress.map((at) => [`${at.source}/${at.partition}`, at]))
  return parent.progress.flatMap((before) => {
    const name = `${before.source}/${before.partition}`
    const at = now.get(name)
    if (at === undefined) return [`${name} is missing, which was read before`]
    const lost = manifest.lost.some(
      (range) => `${range.source}/${range.partition}` === name && range.start === before.end && range.end === at.start,
    )
    return [
      ...unless(
        at.start === before.end || lost,
        `${name} goes on at ${at.start}, the epoch before ended at ${before.end}`,
      ),
      ...unless(at.topicId === before.topicId, `${name} is of topic ${at.topicId}, it was of ${before.topicId}`),
      ...unless(
        !falls(before.maxTimestampMs, at.maxTimestampMs),
        `the largest event time of ${name} is lower than before`,
      ),
    ]
  })
}

/** Each committable says which marker it expects; that is the one which the epochs before have left. */
function markerContradictions(manifest: Manifest, before: ReadonlyMap<string, LaneMarker>): string[] {
  const expects = (marker: Pick<Marker, 'epoch' | 'hash'>, name: string) => {
    const left = before.get(name) ?? { epoch: 0, hash: manifest.genesis }
    return marker.epoch === left.epoch && marker.hash === left.hash
  }
  return [
    ...manifest.committables.flatMap(({ sink, lane, prev, epoch }) => {
      const name = laneName(sink, lane)
      const sound = expects(prev, name) && prev.incarnation === manifest.incarnation && epoch === manifest.epoch
      return unless(sound, `lane ${name} expects epoch ${prev.epoch}, which is not what the epochs before left`)
    }),
    ...manifest.laneMarkers.flatMap((marker) => {
      const name = laneName(marker.sink, marker.lane)
      return unless(expects(marker, name), `the marker of lane ${name} is not what the epochs before left`)
    }),
  ]
}

function countContradictions({ counts, committables, progress }: Manifest): string[] {
  const span = progress.reduce((sum, at) => sum + rangeSpan(at), 0n)
  const rows = new Map<string, number>()
  for (const { sink, rows: more } of committables) rows.set(sink, (rows.get(sink) ?? 0) + more)
  const sinks = new Set([...rows.keys(), ...Object.keys(counts.out)])
  return [
    ...unless(BigInt(counts.in) <= span, `it counts ${counts.in} records of ${span} offsets`),
    ...[...sinks].flatMap((sink) => {
      const staged = rows.get(sink) ?? 0
      const counted = counts.out[sink] ?? 0
      return unless(staged === counted, `it counts ${counted} rows for sink ${sink}, ${staged} are staged`)
    }),
    ...committables.flatMap(({ sink, lane, rows: all, parts }) => {
      const sum = parts.reduce((total, part) => total + part.rows, 0)
      return unless(sum === all, `the parts of lane ${laneName(sink, lane)} have ${sum} rows, not ${all}`)
    }),
  ]
}

/** State does not vanish: each operator covers as many key groups as before. */
function stateContradictions(manifest: Manifest, parent: Manifest): string[] {
  const ends = endsOf(manifest)
  return [...endsOf(parent)].flatMap(([operator, before]) => {
    const end = ends.get(operator) ?? 0
    return unless(end === before, `the state of ${operator} ends at key group ${end}, before at ${before}`)
  })
}

function endsOf({ snapshots }: Manifest): ReadonlyMap<string, number> {
  const ends = new Map<string, number>()
  for (const { operator, keyGroups } of snapshots) ends.set(operator, Math.max(ends.get(operator) ?? 0, keyGroups[1]))
  return ends
}

/** The shards of an operator lie end to end from key group 0. */
function snapshotContradictions({ snapshots }: Manifest): string[] {
  const ends = new Map<string, number>()
  const sorted = [...snapshots].sort((a, b) => a.keyGroups[0] - b.keyGroups[0])
  return sorted.flatMap(({ operator, keyGroups: [from, to] }) => {
    const end = ends.get(operator) ?? 0
    ends.set(operator, to)
    return unless(from === end && to > from, `the state of ${operator} lacks or repeats key groups at ${end}`)
  })
}

function falls(before: number | null, after: number | null): boolean {
  return before !== null && (after === null || after < before)
}

function unless(holds: boolean, sentence: string): string[] {
  return holds ? [] : [sentence]
}
