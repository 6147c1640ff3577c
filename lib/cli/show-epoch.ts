/**
 * `pawl show EPOCH`: the manifest of one epoch as a person reads it.
 *
 * Ranges, counts, snapshots, committables with their markers, rejected records, and the place in the chain. Under
 * `--json` the manifest stands as it is stored, with its history item.
 */

import { unseal, unsealBytes } from '../epoch/seal.ts'
import { type ErrorCode, PawlError } from '../model/errors.ts'
import type { HistoryItem } from '../model/head.ts'
import type { Manifest, RefusedLane, RejectedRecord, Snapshot } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import { rangeSpan } from '../model/offsets.ts'
import { type OpenedPipeline, withPipeline } from './open-directory.ts'
import { type Call, type Command, misused, placeOptions } from './parse-arguments.ts'
import { age, count, duration, pairs, size, table, time } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import { type Output, type Style, styled } from './write-output.ts'

/** `pawl show EPOCH [PIPELINE]`. */
export const showCommand: Command = {
  name: 'show',
  summary: 'show one epoch: ranges, counts, state, output, rejected records',
  positionals: ['EPOCH', '[PIPELINE]'],
  options: { ...placeOptions, rejected: { value: 'N', help: 'how many rejected records to show; 10 by default' } },
  notes: ['EPOCH is a number, or `last` for the newest one'],
  examples: ['pawl show last', 'pawl show 17 word-count', 'pawl show 17 --json | jq .manifest.progress'],
  async run({ options, positionals, output }: Call) {
    const [epoch, pipeline] = positionals
    const wanted = epoch === 'last' ? null : Number(epoch)
    if (wanted !== null && !/^\d{1,15}$/.test(epoch)) throw misused(showCommand, `${JSON.stringify(epoch)} is no epoch`)
    const rejectedMax = options.number('rejected', 0) ?? 10
    return withPipeline(options, pipeline, (opened) =>
      show(opened, wanted ?? opened.head.committed.epoch, rejectedMax, output),
    )
  },
}

async function show(
  { ledger, store, head }: OpenedPipeline,
  epoch: number,
  rejectedMax: number,
  output: Output,
): Promise<number> {
  const item = epoch < head.retainedFrom ? null : await ledger.history(head.pipeline, epoch)
  if (item === null) {
    const fault = `epoch ${epoch} of ${head.pipeline}, which retains ${head.retainedFrom} to ${head.committed.epoch}`
    throw new PawlError('EPOCH_NOT_FOUND', fault, {
      epoch,
      retainedFrom: head.retainedFrom,
      committed: head.committed.epoch,
    })
  }
  const manifest = await unseal<Manifest>(store, item.manifest)
  const damaged: ErrorCode = 'OBJECT_DAMAGED'
  const rejected =
    manifest.rejected === null
      ? []
      : (JSON.parse(
          (await unsealBytes(store, manifest.rejected, 'OBJECT_MISSING', damaged)).toString(),
        ) as RejectedRecord[])
  const refused = manifest.refused === undefined ? [] : await unseal<RefusedLane[]>(store, manifest.refused.object)
  const promoted = epoch <= head.promotedThrough
  output.record({ item, promoted, manifest, rejected, refused })
  const style = output.style()
  output.print([
    ...summary(item, manifest, promoted, style),
    ...section(style, 'ranges', rangeLines(manifest, style)),
    ...section(style, 'output', outputLines(manifest, style)),
    ...section(style, 'state', stateLines(manifest.snapshots, style)),
    ...section(
      style,
      'skipped, since the log had lost them',
      manifest.lost.map((at) => `${at.source}/${at.partition} [${at.start}, ${at.end})`),
    ),
    ...section(
      style,
      'rejected unseen, since each epoch that read them had died',
      manifest.convicted.map((at) => `${at.source}/${at.partition}@${at.offset}`),
    ),
    ...section(
      style,
      'refused by sinks in earlier epochs, dead letters of this one',
      refusedLines(refused, rejectedMax),
    ),
    ...section(style, 'given up at most once, and perhaps not shown', unconfirmedLines(manifest)),
    ...section(style, `rejected (${count(style, manifest.counts.rejected)})`, rejectedLines(rejected, rejectedMax)),
  ])
  return exitCodes.success
}

function summary(item: HistoryItem, manifest: Manifest, promoted: boolean, style: Style): string[] {
  const { counts, parent } = manifest
  const out = Object.entries(counts.out).map(([sink, rows]) => `${sink} ${count(style, rows)}`)
  return pairs([
    ['pipeline', manifest.pipeline],
    ['epoch', styled(style, 'bold', count(style, item.epoch))],
    ['committed', `${time(item.atMs)} (${age(style, item.atMs)}), ${promoted ? 'promoted' : 'not promoted yet'}`],
    ['took', item.epoch === 0 ? '-' : duration(item.atMs - manifest.processingTimeMs)],
    [
      'records',
      `${count(style, counts.in)} in, ${count(style, counts.late)} late, ${count(style, counts.rejected)} rejected`,
    ],
    ['rows', out.length === 0 ? 'none' : out.join(', ')],
    ['watermark', time(manifest.watermarkMs)],
    ['attempt', `${item.attempt}, generation ${item.generation}, run ${manifest.run}`],
    ['build', manifest.build],
    ['incarnation', manifest.incarnation],
    ['manifest', `${item.manifest.sha256} (${size(item.manifest.bytes)})`],
    ['parent', parent === null ? 'none: this is the genesis' : parent.sha256],
  ])
}

function section(style: Style, title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', styled(style, 'bold', title), ...lines.map((line) => `  ${line}`)]
}

function rangeLines({ progress }: Manifest, style: Style): string[] {
  return table(
    ['source', '>partition', '>start', '>end', '>offsets', 'largest event time'],
    progress.map((at) => [
      at.source,
      String(at.partition),
      count(style, at.start),
      count(style, at.end),
      count(style, rangeSpan(at)),
      time(at.maxTimestampMs),
    ]),
  )
}

function outputLines({ committables, laneMarkers }: Manifest, style: Style): string[] {
  const staged = new Map(committables.map((committable) => [laneName(committable.sink, committable.lane), committable]))
  return table(
    ['lane', '>rows', '>size', '>parts', '>marker before', 'target'],
    laneMarkers.map((marker) => {
      const name = laneName(marker.sink, marker.lane)
      const found = staged.get(name)
      const before = `epoch ${count(style, marker.epoch)}`
      if (found === undefined) return [name, '0', '-', '-', before, '-']
      return [name, count(style, found.rows), size(found.bytes), String(found.parts.length), before, found.target]
    }),
  )
}

function stateLines(snapshots: readonly Snapshot[], style: Style): string[] {
  return table(
    ['operator', 'kind', '>key groups', '>files', '>entries', '>size'],
    snapshots.map(({ operator, stateKind, keyGroups: [from, to], files }) => [
      operator,
      stateKind,
      `[${from}, ${to})`,
      `${files.length}`,
      count(
        style,
        files.reduce((sum, file) => sum + file.entries, 0),
      ),
      size(files.reduce((sum, file) => sum + file.bytes, 0)),
    ]),
  ).slice(snapshots.length === 0 ? 1 : 0)
}

function refusedLines(lanes: readonly RefusedLane[], max: number): string[] {
  const all = lanes.flatMap(({ sink, lane, rows }) =>
    rows.map(({ epoch, row, code, column, reason }) => {
      const at = column === null ? '' : `, column ${column}`
      return `${laneName(sink, lane)} epoch ${epoch} row ${row}${at}  ${code}: ${reason.replaceAll('\n', ' ')}`
    }),
  )
  return all.length > max && max > 0 ? [...all.slice(0, max), `and ${all.length - max} more`] : all.slice(0, max)
}

function unconfirmedLines({ unconfirmed = [] }: Manifest): string[] {
  return unconfirmed.map(({ sink, lane, epoch, rows, code }) => {
    return `${laneName(sink, lane)} epoch ${epoch}, ${rows} rows: ${code}`
  })
}

function rejectedLines(rejected: readonly RejectedRecord[], max: number): string[] {
  const lines = rejected.slice(0, max).map(({ topic, partition, offset, operator, error }) => {
    return `${topic}/${partition}@${offset}  ${operator}  ${error.name}: ${error.message.replaceAll('\n', ' ')}`
  })
  const more = rejected.length - lines.length
  return more > 0 && max > 0 ? [...lines, `and ${more} more`] : lines
}
