/**
 * `pawl verify`: audits the whole chain of a pipeline and says each fault in one line.
 *
 * The walk is `lib/epoch/verify.ts`; here it is given eyes for sinks: files sinks are always looked into, others
 * through the pipeline file. May run beside the pipeline.
 */
import { type ChainFault, faultText, type Verified, verify } from '../epoch/verify.ts'
import { errorRegistry } from '../model/errors.ts'
import type { RegisteredLane } from '../model/head.ts'
import type { Marker } from '../model/manifest.ts'
import type { Sink } from '../ports/sink.ts'
import type { OpenContext, SinkSpec } from '../ports/spec.ts'
import type { Compiled } from '../stream/compiled.ts'
import { clusterNotes, clusterOf, clusterOptions, defaultStage, kafkaOptionsOf } from './load-cluster.ts'
import { type OpenedPipeline, withPipeline } from './open-directory.ts'
import { type Call, type Command, misused, placeOptions } from './parse-arguments.ts'
import { count, pairs, size } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import { readFileMarker, readFileOutput } from './verify-files.ts'
import { type Style, styled } from './write-output.ts'

/** `pawl verify [PIPELINE]`. */
export const verifyCommand: Command = {
  name: 'verify',
  summary: 'audit the chain: hashes, offsets, counts, state, output, markers',
  positionals: ['[PIPELINE]'],
  options: {
    ...placeOptions,
    file: { value: 'FILE', help: 'the pipeline file, through which markers of Kafka and other sinks are read' },
    export: { value: 'NAME', help: 'its export; default by default' },
    ...clusterOptions,
  },
  notes: [...clusterNotes, 'exit code 1 when there is a fault'],
  examples: [
    'pawl verify',
    'pawl verify word-count --json',
    'pawl verify --stack my-stack --file totals.ts --bootstrap 127.0.0.1:9092',
    'pawl verify --file totals.ts --bootstrap 127.0.0.1:9092',
  ],
  run: (call: Call) => withPipeline(call.options, call.positionals[0], (opened) => audit(call, opened)),
}

async function audit(call: Call, opened: OpenedPipeline): Promise<number> {
  const { output } = call
  const { directory, ledger, store, head } = opened
  const sinks = await sinksOf(call, opened)
  const verified = await verify({
    ledger,
    store,
    pipeline: head.pipeline,
    readMarker: async (lane) => {
      const marker = directory === null ? 'unreadable' : readFileMarker(directory, lane)
      return marker === 'unreadable' ? sinks.readMarker(lane) : marker
    },
    readOutput: async (committed) => (directory === null ? [] : readFileOutput(directory, committed)),
  }).finally(sinks.close)
  const { faults } = verified
  output.record(recordOf(verified))
  output.print(linesOf(verified, output.style()))
  return faults.length === 0 ? exitCodes.success : exitCodes.failure
}

interface Sinks {
  readMarker(lane: RegisteredLane): Promise<Marker | null | 'unreadable' | 'unmarked'>
  close(): Promise<void>
}

/** The sinks of the pipeline file, opened when they are asked for. */
async function sinksOf(call: Call, { directory, stage: deployed, store, head }: OpenedPipeline): Promise<Sinks> {
  const file = call.options.text('file')
  if (file === undefined) return { readMarker: async () => 'unreadable', close: async () => undefined }
  const { loadPipeline } = await import('../places/load.ts')
  const compiled = await loadPipeline(file, call.options.text('export'))
  refuseOther(compiled, head.pipeline, file)
  const cluster = await clusterOf(kafkaOptionsOf(call))
  const stage = call.options.text('stage') ?? deployed ?? defaultStage
  const context: OpenContext = { pipeline: head.pipeline, incarnation: head.incarnation, stage, directory, store }
  const open = async (id: string, spec: SinkSpec<unknown, unknown>): Promise<Sink | null> => {
    if (spec.kind === 'sink') return spec.open(id, context)
    return (await (spec.cluster ?? cluster)?.openSink(spec, id, context)) ?? null
  }
  const opened = new Map<string, Promise<Sink | null>>()
  return {
    async readMarker({ sink, lane }) {
      const spec = compiled.sinks[sink]
      if (spec === undefined) return 'unreadable'
      const opening = opened.get(sink) ?? open(sink, spec)
      opened.set(sink, opening)
      const found = await opening
      if (found === null) return 'unreadable'
      const marker = await found.marker(lane)
      return marker === null && spec.kind === 'sink' && spec.guarantee !== 'exactly-once' ? 'unmarked' : marker
    },
    async close() {
      for (const sink of await Promise.allSettled(opened.values()))
        if (sink.status === 'fulfilled') await sink.value?.close()
    },
  }
}

function refuseOther({ topology }: Compiled, pipeline: string, file: string): void {
  if (topology.pipeline !== pipeline)
    throw misused(verifyCommand, `${file} is pipeline ${topology.pipeline}, not ${pipeline}`)
}

function recordOf({ head, faults, ...found }: Verified) {
  const { pipeline, incarnation, committed, promotedThrough, retainedFrom } = head
  const described = faults.map((fault) => ({
    ...fault,
    message: faultText(fault),
    next: errorRegistry[fault.code].action,
  }))
  return {
    pipeline,
    incarnation,
    committed: committed.epoch,
    promotedThrough,
    retainedFrom,
    ...found,
    faults: described,
  }
}

function linesOf(
  { head, epochs, objects, bytes, lanes, unreadable, orphans, faults }: Verified,
  style: Style,
): string[] {
  const counted = (number: number, noun: string) => `${count(style, number)} ${noun}${number === 1 ? '' : 's'}`
  const seen = lanes - unreadable.length
  const verdict =
    faults.length === 0 ? styled(style, 'green', 'sound') : styled(style, 'red', counted(faults.length, 'fault'))
  const rows: [string, string][] = [
    ['pipeline', head.pipeline],
    [
      'chain',
      `${counted(epochs, 'epoch')}, ${count(style, head.retainedFrom)} to ${count(style, head.committed.epoch)}`,
    ],
    ['objects', `${count(style, objects)}, ${size(bytes)}`],
    [
      'markers',
      unreadable.length === 0
        ? `${counted(seen, 'lane')}`
        : `${seen} of ${counted(lanes, 'lane')}: --file FILE reads the others`,
    ],
    [
      'orphans',
      orphans.objects === 0
        ? 'none'
        : `${count(style, orphans.objects)}, ${size(orphans.bytes)}: harmless, pawl collect deletes them`,
    ],
    ['verdict', verdict],
  ]
  return [...faults.map((fault: ChainFault) => faultText(fault)), ...(faults.length === 0 ? [] : ['']), ...pairs(rows)]
}
