/**
 * Compare: what a deployment of a pipeline file would keep, add, drop, migrate or be refused for.
 *
 * Reads:  a compiled pipeline, the head, the newest manifest and those that are not promoted. Writes: nothing; pure.
 * Safe to repeat because: it only compares, by the same judgement by which a plan refuses.
 */
import type { ErrorCode } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import type { StartPosition } from '../ports/log.ts'
import type { Compiled } from '../stream/compiled.ts'
import { judgeLineage, judgeSinks, type LineageFault } from './judge-lineage.ts'

/** What becomes of one source, operator, sink or setting. */
export interface Change {
  readonly kind: LineageFault['kind'] | 'setting'
  readonly id: string
  readonly change: 'kept' | 'added' | 'dropped' | 'migrated' | 'changed' | 'refused'
  /** What that means. */
  readonly text: string
  /** With which a run would park; null unless refused. */
  readonly code: ErrorCode | null
}

/** What is deployed. Null: nothing ever ran. */
export interface Deployed {
  readonly head: Head
  readonly manifest: Manifest
  /** Committed and not visible, oldest first. */
  readonly unpromoted: readonly Manifest[]
}

/** All changes, sources first. */
export function compare(compiled: Compiled, deployed: Deployed | null): Change[] {
  const faults =
    deployed === null
      ? []
      : [...judgeLineage(compiled, deployed.manifest), ...judgeSinks(compiled, deployed.head, deployed.unpromoted)]
  const refused = faults.map(
    ({ kind, id, code, fault }): Change => ({ kind, id, change: 'refused', text: fault, code }),
  )
  const others = [
    ...compareSources(compiled, deployed),
    ...compareOperators(compiled, deployed),
    ...compareSinks(compiled, deployed),
    ...compareSettings(compiled, deployed),
  ].filter(({ kind, id }) => !refused.some((known) => known.kind === kind && known.id === id))
  const kinds: readonly Change['kind'][] = ['source', 'operator', 'sink', 'setting']
  return [...refused, ...others].sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind))
}

const changeOf = (kind: Change['kind'], id: string, change: Change['change'], text: string): Change => {
  return { kind, id, change, text, code: null }
}

function compareSources({ sources }: Compiled, deployed: Deployed | null): Change[] {
  const read = new Set(deployed?.manifest.progress.map(({ source }) => source))
  return Object.entries(sources).map(([id, { start }]) =>
    read.has(id)
      ? changeOf('source', id, 'kept', 'goes on where it is; its start position is not asked again')
      : changeOf('source', id, 'added', `begins at ${startText(start)}`),
  )
}

function startText(start: StartPosition): string {
  switch (start.at) {
    case 'earliest':
      return 'the beginning of its topic'
    case 'latest':
      return 'the end of its topic as the next epoch finds it: what is there by then is not read'
    case 'timestamp':
      return `the records of ${new Date(start.timestampMs).toISOString()}`
    case 'offsets':
      return 'the offsets that the file names'
    case 'group':
      return `the offsets of group ${start.group}`
  }
}

function compareOperators({ stateful }: Compiled, deployed: Deployed | null): Change[] {
  return stateful.map(({ operator: id, stateVersion }) => {
    const kept = deployed?.manifest.snapshots.find((snapshot) => snapshot.operator === id)
    if (kept === undefined) return changeOf('operator', id, 'added', 'begins with no state')
    if (kept.stateVersion === stateVersion)
      return changeOf('operator', id, 'kept', `keeps its state, version ${stateVersion}`)
    return changeOf(
      'operator',
      id,
      'migrated',
      `reads state of version ${kept.stateVersion} as version ${stateVersion}; no way back`,
    )
  })
}

function compareSinks({ sinks }: Compiled, deployed: Deployed | null): Change[] {
  const registered = Map.groupBy(deployed?.head.lanes ?? [], ({ sink }) => sink)
  const dropped = [...registered.keys()].filter((id) => !(id in sinks))
  return [
    ...Object.entries(sinks).map(([id, { lanes }]) => {
      const known = registered.get(id)?.length ?? 0
      if (known === 0) return changeOf('sink', id, 'added', `${lanes} lane(s) get a base marker`)
      if (known < lanes)
        return changeOf('sink', id, 'changed', `${known} lane(s) become ${lanes}: a key may change its lane`)
      return changeOf('sink', id, 'kept', `goes on from the markers of ${known} lane(s)`)
    }),
    ...dropped.map((id) =>
      changeOf('sink', id, 'dropped', 'gets no more rows; its markers stay, and it goes on from them once it is back'),
    ),
  ]
}

function compareSettings({ settings }: Compiled, deployed: Deployed | null): Change[] {
  if (deployed === null) return []
  const { guarantee = 'exactly-once' } = deployed.manifest
  if (guarantee === settings.guarantee) return []
  return [changeOf('setting', 'guarantee', 'changed', `${guarantee} becomes ${settings.guarantee}`)]
}
