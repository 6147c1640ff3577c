/**
 * Judge lineage: whether a pipeline file may go on from what is committed.
 *
 * Reads:  a compiled pipeline, the head and manifests. Writes: nothing; pure.
 * Safe to repeat because: it only compares. A plan refuses the first fault; `pawl diff` shows them all beforehand.
 */
import { type ErrorCode, PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import { shardRange } from '../state/key-groups.ts'
import type { Compiled } from '../stream/compiled.ts'

/** Why a file may not go on, and because of what. */
export interface LineageFault {
  readonly code: ErrorCode
  readonly kind: 'operator' | 'source' | 'sink'
  readonly id: string
  readonly fault: string
}

/** State may not be lost by renaming or re-sharding an operator, nor input by renaming a source. */
export function judgeLineage({ topology, settings, stateful, sources }: Compiled, parent: Manifest): LineageFault[] {
  const { shards, keyGroups } = settings
  const ranges = Array.from({ length: shards }, (_, shard) => shardRange(shard, shards, keyGroups).join('-'))
  const faults: LineageFault[] = []
  const refuse = (id: string, fault: string, code: ErrorCode = 'LINEAGE_CHANGED') =>
    void faults.push({ code, kind: 'operator', id, fault })
  for (const { operator: id, stateKind, stateVersion, keyGroups: kept } of parent.snapshots) {
    if (faults.some((known) => known.id === id)) continue
    const operator = stateful.find((known) => known.operator === id)
    if (!operator) refuse(id, `${topology.pipeline} has no operator ${id}, which has state`)
    else if (operator.stateKind !== stateKind)
      refuse(id, `operator ${id} is of kind ${operator.stateKind}, its state of kind ${stateKind}`)
    else if (operator.stateVersion < stateVersion)
      refuse(
        id,
        `operator "${id}" has version ${operator.stateVersion}, its state ${stateVersion}`,
        'STATE_VERSION_NEWER',
      )
    else if (!ranges.includes(kept.join('-')))
      refuse(id, `operator ${id} keeps its state in other shards than the ${shards} of ${keyGroups} key groups`)
  }
  for (const id of new Set(parent.progress.map(({ source }) => source))) {
    const fault = `${topology.pipeline} has no source ${id}, which has been read`
    if (!(id in sources)) faults.push({ code: 'LINEAGE_CHANGED', kind: 'source', id, fault })
  }
  return faults
}

/** Throws the first fault: `LINEAGE_CHANGED`, `STATE_VERSION_NEWER`. */
export function refuseLineage(compiled: Compiled, parent: Manifest): void {
  const [first] = judgeLineage(compiled, parent)
  if (first !== undefined) throw new PawlError(first.code, first.fault, { [first.kind]: first.id })
}

/** Sinks that the file lacks although they have output that is committed and not visible, or rows that were refused. */
export function judgeSinks(
  { topology, sinks }: Compiled,
  { refusing = [] }: Head,
  unpromoted: readonly Manifest[],
): LineageFault[] {
  const owing = [
    ...unpromoted.flatMap(({ epoch, committables }) =>
      committables.map(({ sink }) => ({ sink, what: `output of epoch ${epoch}, which is committed and not visible` })),
    ),
    ...refusing.map(({ sink }) => ({ sink, what: 'rows that it refused, which are on their way to the dead letters' })),
  ]
  const missing = owing.filter(({ sink }, at) => !(sink in sinks) && owing.findIndex((one) => one.sink === sink) === at)
  const faults = missing.map(({ sink, what }): LineageFault => {
    return {
      code: 'SINK_MISSING',
      kind: 'sink',
      id: sink,
      fault: `${topology.pipeline} has no sink ${sink}, which has ${what}`,
    }
  })
  if (refusing.length === 0 || topology.deadLetterSink !== null) return faults
  const fault = `${topology.pipeline} has no sink for dead letters, ${refusing[0]?.sink} has refused rows for it`
  return [...faults, { code: 'DEAD_LETTERS_STRANDED', kind: 'sink', id: refusing[0]?.sink ?? '', fault }]
}
