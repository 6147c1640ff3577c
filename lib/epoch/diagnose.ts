/**
 * Diagnose: checks everything that a pipeline stands on, from where its steps run, and says how to mend each fault.
 *
 * Reads:  the head, the last manifest, bounds and settings of logs, markers of lanes, the services around. Writes: nothing.
 * Safe to repeat because: it only reads; no transaction is opened and no producer is fenced, so that it may run beside
 * the pipeline. A check that fails hides none of the others.
 */
import { type ErrorCode, errorRegistry } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import { laneName } from '../model/names.ts'
import { diagnoseSurroundings } from './diagnose-surroundings.ts'
import { diagnoseTopics } from './diagnose-topics.ts'
import { broken, type Finding, ill, type Patient, well } from './finding.ts'
import { type Job, openSink, readManifest } from './job.ts'

export type { Finding, Patient } from './finding.ts'

/** All findings, in the order in which one rests on the other. Never throws. */
export async function diagnose(patient: Patient): Promise<Finding[]> {
  const { job, surroundings } = patient
  const found: Finding[] = []
  const head = await diagnoseLedger(job, found)
  const manifest = await diagnoseStore(job, head, found)
  if (surroundings !== null) found.push(...(await diagnoseSurroundings(job, surroundings)))
  found.push(...(await diagnoseTopics(patient, head, manifest)))
  if (head !== null) for (const lane of head.lanes) found.push(await diagnoseLane(job, head, lane.sink, lane.lane))
  return found
}

async function diagnoseLedger({ place, compiled }: Job, found: Finding[]): Promise<Head | null> {
  try {
    const head = await place.ledger.read(compiled.topology.pipeline)
    found.push(head === null ? well('ledger', 'it answers; the pipeline has never run') : headFinding(head))
    return head
  } catch (error) {
    found.push(broken('ledger', error))
    return null
  }
}

function headFinding({ committed, promotedThrough, parked, paused, failures }: Head): Finding {
  const at = `epoch ${committed.epoch} is committed, ${promotedThrough} promoted`
  if (parked !== null) {
    const code = parked.code in errorRegistry ? (parked.code as ErrorCode) : null
    const mend = code === null ? 'mend it, then pawl resume' : `${errorRegistry[code].action}; then pawl resume`
    return ill('ledger', 'fail', `${at}; parked: ${parked.message.replace(/\.? Next: .*$/s, '')}`, mend, code)
  }
  if (paused)
    return ill('ledger', 'warn', `${at}; paused${paused.why === null ? '' : `: ${paused.why}`}`, 'pawl resume lifts it')
  if (failures.count === 0) return well('ledger', at)
  const last = failures.last?.message ?? 'unknown'
  return ill(
    'ledger',
    'warn',
    `${at}; ${failures.count} failures in a row, the last: ${last}`,
    'mend what the failure names',
  )
}

async function diagnoseStore(job: Job, head: Head | null, found: Finding[]): Promise<Manifest | null> {
  try {
    if (head === null) {
      for await (const _ of job.place.store.list('pipelines/')) break
      found.push(well('store', 'it answers'))
      return null
    }
    const manifest = await readManifest(job, head.committed.manifest)
    const build =
      manifest.build === job.compiled.build ? 'this build' : 'another build, this one takes over with the next'
    found.push(well('store', `the manifest of epoch ${manifest.epoch} is whole; it is of ${build}`))
    return manifest
  } catch (error) {
    found.push(broken('store', error))
    return null
  }
}

/** From registration on a lane has a marker of this incarnation, at or below the newest epoch. */
async function diagnoseLane(job: Job, { incarnation, committed }: Head, sink: string, lane: number): Promise<Finding> {
  const check = `lane ${laneName(sink, lane)}`
  if (!(sink in job.compiled.sinks)) return well(check, 'its sink is not in the file any more; its marker stays')
  try {
    const marker = await (await openSink(job, sink, incarnation)).marker(lane)
    if (marker === null) {
      const { action } = errorRegistry.MARKER_MISSING
      return ill(
        check,
        'fail',
        'it has no marker: the sink was recreated, or its marker was deleted',
        action,
        'MARKER_MISSING',
      )
    }
    if (marker.incarnation !== incarnation) {
      const text = `its marker is of incarnation ${marker.incarnation}, the ledger is ${incarnation}`
      return ill(check, 'fail', text, errorRegistry.MARKER_FOREIGN.action, 'MARKER_FOREIGN')
    }
    if (marker.epoch > committed.epoch) {
      const text = `it shows epoch ${marker.epoch}, the ledger knows ${committed.epoch}`
      return ill(check, 'fail', text, errorRegistry.LEDGER_REWOUND.action, 'LEDGER_REWOUND')
    }
    return well(check, `its marker shows epoch ${marker.epoch}`)
  } catch (error) {
    return broken(check, error)
  }
}
