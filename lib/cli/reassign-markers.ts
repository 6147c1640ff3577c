/**
 * `pawl sinks adopt` and `pawl sinks reset`: replaces the markers of lanes, each by compare-and-set from what was shown.
 *
 * Says what the sink goes on showing, since no row is touched. Without `--yes` it only says what it would do. Safe to
 * repeat: what was replaced is found so, and left.
 */
import { PawlError } from '../model/errors.ts'
import type { Marker } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import type { Sink } from '../ports/sink.ts'
import { type OpenedSinks, shown } from './open-sinks.ts'
import type { Call } from './parse-arguments.ts'
import { exitCodes } from './report-error.ts'

interface Replacement {
  readonly id: string
  readonly sink: Sink
  readonly lane: number
  readonly from: Marker | null
  readonly to: Marker | null
  /** What the person must know. */
  readonly says: string
}

/** Gives lanes that show another incarnation, or lost their marker, the one that the ledger expects. */
export async function adopt(call: Call, opened: OpenedSinks): Promise<number> {
  const { compiled, place, head } = opened
  const { pipeline } = compiled.topology
  if (head === null)
    throw new PawlError('PIPELINE_NOT_FOUND', `${pipeline} has no head that could take lanes over: run it once`)
  const { recoverMarkers } = await import('../epoch/recover-markers.ts')
  const due = await recoverMarkers(place.ledger, place.store, head)
  return replace(call, 'adopt', opened, (id, lane, from) => {
    const registered = head.lanes.some((known) => known.sink === id && known.lane === lane)
    if (from === null ? !registered : from.incarnation === head.incarnation) return null
    const to = due(id, lane)
    const rows = from === null ? 'whatever it shows' : 'what that one wrote'
    return {
      to,
      says: `${rows} stays visible; the pipeline goes on with ${shown(to)}, and what it reads again comes again`,
    }
  })
}

/** Removes markers, so that a pipeline of this name can begin anew. */
export async function reset(call: Call, opened: OpenedSinks): Promise<number> {
  const { head } = opened
  return replace(call, 'reset', opened, (id, lane, from) => {
    if (from === null) return null
    const registered = head?.lanes.some((known) => known.sink === id && known.lane === lane) ?? false
    const rows = `its rows through epoch ${from.epoch} stay visible: clear them, or a new beginning writes them again`
    const stops = registered
      ? '; the head still knows the lane, so this incarnation stops with MARKER_MISSING (pawl sinks adopt gives it back)'
      : ''
    return { to: null, says: `${rows}${stops}` }
  })
}

type Decide = (id: string, lane: number, from: Marker | null) => Pick<Replacement, 'to' | 'says'> | null

async function replace(
  { options, output }: Call,
  action: 'adopt' | 'reset',
  { compiled, sinks }: OpenedSinks,
  decide: Decide,
): Promise<number> {
  const wanted: Replacement[] = []
  for (const { id, sink, lanes } of sinks) {
    for (const lane of lanes) {
      const from = await sink.marker(lane)
      const decided = decide(id, lane, from)
      if (decided !== null) wanted.push({ id, sink, lane, from, ...decided })
    }
  }
  const really = options.flag('yes') && !options.flag('dry-run')
  const done = []
  for (const one of wanted) {
    const { id, sink, lane, from, to, says } = one
    if (really) await replaceOne(one)
    done.push({ sink: id, lane, target: sink.target, from, to, says })
    output.print([
      `lane ${laneName(id, lane)} in ${sink.target}: ${really ? 'showed' : 'shows'} ${shown(from)}, ${really ? 'now' : 'would get'} ${shown(to)}`,
      `  ${says}`,
    ])
  }
  output.record({ pipeline: compiled.topology.pipeline, action, done: really, lanes: done })
  if (wanted.length === 0) output.print([`no lane to ${action}`])
  if (wanted.length > 0 && !really && !options.flag('dry-run'))
    throw new PawlError('COMMAND_INVALID', `nothing was changed: add --yes to ${action} (pawl sinks)`)
  return exitCodes.success
}

async function replaceOne({ id, sink, lane, from, to }: Replacement): Promise<void> {
  if (sink.reassign === undefined)
    throw new PawlError('COMMAND_INVALID', `sink ${id} does not let its markers be replaced (pawl sinks)`)
  const found = await sink.reassign(lane, from, to)
  if (found?.incarnation === to?.incarnation && found?.epoch === to?.epoch && found?.hash === to?.hash) return
  const fault = `lane ${laneName(id, lane)} shows ${shown(found)} by now: the pipeline runs, stop it first`
  throw new PawlError('MARKER_UNKNOWN', fault, { sink: id, lane })
}
