/**
 * `pawl sinks ACTION FILE`: what a person decides about the markers of a pipeline's sinks.
 *
 * `list` and `prepare` are here; `adopt` and `reset`, which replace markers, in `reassign-markers.ts`.
 */
import type { Marker } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import { clusterNotes, clusterOptions } from './load-cluster.ts'
import { type OpenedSinks, shown, withSinks } from './open-sinks.ts'
import { type Call, type Command, misused, placeOptions } from './parse-arguments.ts'
import { table } from './print-values.ts'
import { adopt, reset } from './reassign-markers.ts'
import { exitCodes } from './report-error.ts'

type Action = (call: Call, opened: OpenedSinks) => Promise<number>

/** Each with whether it may make the directory: before the first run, and where the ledger is gone. */
const actions: Readonly<Record<string, { readonly act: Action; readonly makes: boolean }>> = {
  list: { act: list, makes: false },
  prepare: { act: prepare, makes: true },
  adopt: { act: adopt, makes: false },
  reset: { act: reset, makes: true },
}

/** `pawl sinks ACTION FILE`. */
export const sinksCommand: Command = {
  name: 'sinks',
  summary: 'markers of sinks: list, prepare, adopt, reset',
  positionals: ['ACTION', 'FILE'],
  options: {
    ...placeOptions,
    sink: { value: 'ID', help: 'only this sink; may be given several times', multiple: true },
    'dry-run': { help: 'only say what would be sent or replaced' },
    yes: { help: 'really adopt or reset' },
    export: { value: 'NAME', help: 'export of the file; default by default' },
    ...clusterOptions,
  },
  notes: [
    'list     what each lane shows, and whether it fits the ledger; exit code 1 when one does not',
    'prepare  makes tables of markers and control topics, and says with which statements; markers stay as they are',
    'adopt    takes over lanes that show another incarnation or no marker: they get the marker that the ledger expects.',
    '         What the sink shows stays visible, and the pipeline writes after it',
    'reset    removes the markers, so that the pipeline can begin anew. Rows stay: clear them first, or they come twice',
    'adopt and reset compare and set; they change nothing without --yes, and stop the pipeline before they are used',
    ...clusterNotes,
  ],
  examples: [
    'pawl sinks list totals.ts',
    'pawl sinks prepare totals.ts --dry-run',
    'pawl sinks adopt totals.ts --sink totals --yes',
    'pawl sinks reset totals.ts --stack my-stack --bootstrap 127.0.0.1:9092 --yes',
  ],
  async run(call) {
    const [name, file] = call.positionals
    const action = actions[name!]
    if (action === undefined || file === undefined)
      throw misused(sinksCommand, `${JSON.stringify(name)} is none of ${Object.keys(actions).join(', ')}`)
    return withSinks(call, file, action.makes, (opened) => action.act(call, opened))
  },
}

async function list(call: Call, { compiled, place, head, sinks }: OpenedSinks): Promise<number> {
  const { judgeMarker } = await import('../epoch/judge-marker.ts')
  const { recoverMarkers } = await import('../epoch/recover-markers.ts')
  const { pipeline } = compiled.topology
  const due = head === null ? null : await recoverMarkers(place.ledger, place.store, head)
  const lanes = []
  for (const { id, sink, lanes: numbers } of sinks) {
    for (const lane of numbers) {
      const marker = await sink.marker(lane)
      const now = await place.ledger.read(pipeline)
      const known = now?.lanes.find((one) => one.sink === id && one.lane === lane)
      const registered = known !== undefined
      const item = marker === null || now === null ? null : await place.ledger.history(pipeline, marker.epoch)
      const evidence = { lane: known ?? { sink: id, lane, target: sink.target }, marker, item }
      const fits = now === null || (marker === null && !registered)
      const fault = fits ? null : judgeMarker({ ...evidence, head: now, expected: due?.(id, lane).epoch ?? 0 })
      const refusing = now?.refusing?.some((one) => one.sink === id && one.lane === lane) ?? false
      lanes.push({ sink: id, lane, target: sink.target, registered, marker, refusing, code: fault?.code ?? null })
    }
  }
  call.output.record({ pipeline, incarnation: head?.incarnation ?? null, lanes })
  const rows = lanes.map((one) => [laneName(one.sink, one.lane), one.target, shown(one.marker), laneState(one)])
  call.output.print(table(['lane', 'target', 'shows', 'state'], rows))
  return lanes.some(({ code }) => code !== null) ? exitCodes.failure : exitCodes.success
}

/** What `list` found of a lane. */
export interface ListedLane {
  readonly registered: boolean
  readonly marker: Marker | null
  readonly refusing: boolean
  /** Of what is at fault; null when nothing is. */
  readonly code: string | null
}

/** Whether the lane fits the ledger, and holds rows that it refused. */
export function laneState({ registered, marker, refusing, code }: ListedLane): string {
  const state = code ?? (registered ? 'sound' : marker === null ? 'not yet registered' : 'unregistered')
  return refusing ? `${state}, holds refused rows` : state
}

async function prepare({ options, output }: Call, { compiled, sinks }: OpenedSinks): Promise<number> {
  const dryRun = options.flag('dry-run')
  const prepared = []
  for (const { id, sink } of sinks) {
    const statements = (await sink.prepare?.({ dryRun })) ?? []
    prepared.push({ sink: id, target: sink.target, statements })
    const what = statements.length === 0 ? 'needs nothing' : dryRun ? 'would be sent' : 'is prepared, as by'
    output.print([`sink ${id} in ${sink.target}: ${what}`, ...statements])
  }
  output.record({ pipeline: compiled.topology.pipeline, dryRun, prepared })
  return exitCodes.success
}
