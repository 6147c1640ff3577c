/**
 * Reads the files of a snapshot back into a state.
 *
 * Files are applied in order, the last word wins. Keys outside of the wanted key groups are left out, so that the
 * files of other ranges can be read after a change of shards.
 */
import { PawlError } from '../model/errors.ts'
import type { Snapshot, SnapshotFile } from '../model/manifest.ts'
import { type Key, keyGroupOf } from './key-groups.ts'
import type { Change, StateScope } from './lineage.ts'
import { frameKind, readSnapshotFile, type SnapshotBlock, type SnapshotFileRead } from './snapshot-file.ts'
import { untagged } from './values.ts'

/** Where files are read into. */
export interface Restored {
  restore(group: number, key: Key, value: unknown): void
  unrestore(group: number, key: Key): void
  dropGroup(group: number): void
  fireGroup(group: number): void
}

/**
 * Reads all files into `into` and returns what each delta changes. Throws `SNAPSHOT_DAMAGED`,
 * `STATE_VERSION_NEWER`, and `LINEAGE_CHANGED` when the files hold another operator's or kind's state.
 */
export function loadSnapshot(
  scope: StateScope,
  stateKind: string,
  snapshot: Snapshot | null,
  files: readonly Buffer[],
  into: Restored,
): Change[] {
  const listed = snapshot?.files ?? []
  if (listed.length !== files.length)
    throw damaged(scope, listed[0]?.name ?? '(none)', `${files.length} files, not ${listed.length}`)
  if (snapshot) checkScope(scope, stateKind, snapshot)
  const deltas: Change[] = []
  for (const [i, bytes] of files.entries()) {
    const read = readSnapshotFile(bytes, scope.operator, listed[i].name)
    checkFile(scope, stateKind, read, listed[i], i)
    const change = applyFile(scope, read, listed[i].name, into)
    if (i > 0) deltas.push(change)
  }
  return deltas
}

function checkScope(scope: StateScope, stateKind: string, saved: Omit<Snapshot, 'files' | 'keyGroups'>): void {
  const { operator } = scope
  if (saved.operator !== operator)
    throw new PawlError('LINEAGE_CHANGED', `operator "${operator}" is given the state of "${saved.operator}"`, {
      operator,
    })
  if (saved.stateKind !== stateKind) {
    const fault = `operator "${operator}" keeps state of kind ${stateKind}, but its snapshot is of kind ${saved.stateKind}`
    throw new PawlError('LINEAGE_CHANGED', fault, { operator, stateKind: saved.stateKind })
  }
  if (saved.stateVersion > scope.stateVersion) {
    const fault = `operator "${operator}" has version ${scope.stateVersion}, its state ${saved.stateVersion}`
    throw new PawlError('STATE_VERSION_NEWER', fault, { operator, stateVersion: saved.stateVersion })
  }
}

function checkFile(
  scope: StateScope,
  stateKind: string,
  { header }: SnapshotFileRead,
  listed: SnapshotFile,
  i: number,
): void {
  checkScope(scope, stateKind, header)
  const { operator } = scope
  if (header.totalKeyGroups !== scope.totalKeyGroups) {
    const fault = `operator "${operator}" has ${scope.totalKeyGroups} key groups, its state ${header.totalKeyGroups}`
    throw new PawlError('LINEAGE_CHANGED', fault, { operator, keyGroups: header.totalKeyGroups })
  }
  const due = i === 0 ? 'base' : 'delta'
  if (header.file !== due || listed.file !== due)
    throw damaged(scope, listed.name, `a ${header.file} in place of a ${due}`)
}

function damaged({ operator }: StateScope, file: string, fault: string, cause?: unknown): PawlError {
  return new PawlError('SNAPSHOT_DAMAGED', `operator "${operator}", file ${file}: ${fault}`, { operator, file }, cause)
}

function applyFile(scope: StateScope, read: SnapshotFileRead, name: string, into: Restored): Change {
  const { keyGroups, totalKeyGroups } = scope
  const [from, to] = read.header.keyGroups
  const whole = keyGroups[0] <= from && to <= keyGroups[1]
  const wanted = (key: Key): boolean => {
    const group = keyGroupOf(key, totalKeyGroups)
    return keyGroups[0] <= group && group < keyGroups[1]
  }
  const change = { dropped: new Set<number>(), touched: new Map<number, Key[]>(), fired: new Set<number>() }
  for (const block of read.blocks()) {
    try {
      applyBlock(block, whole ? null : wanted, change, into)
    } catch (cause) {
      if (cause instanceof PawlError) throw cause
      throw damaged(scope, name, 'a block that does not read', cause)
    }
  }
  return change
}

interface ChangeUnderWay {
  readonly dropped: Set<number>
  readonly touched: Map<number, Key[]>
  readonly fired: Set<number>
}

function applyBlock(
  block: SnapshotBlock,
  wanted: ((key: Key) => boolean) | null,
  change: ChangeUnderWay,
  into: Restored,
): void {
  if ('groups' in block) {
    const dropping = block.kind === frameKind.drop
    for (const group of block.groups) {
      if (dropping) into.dropGroup(group)
      else into.fireGroup(group)
      const noted = dropping ? change.dropped : change.fired
      noted.add(group)
    }
    return
  }
  const isTagged = block.kind !== frameKind.set
  for (const [group, writtenKeys, values] of block.runs as readonly (readonly [number, Key[], unknown[]?])[]) {
    const keys = isTagged ? (untagged(writtenKeys) as Key[]) : writtenKeys
    if (values === undefined) unrestoreRun(group, keys, wanted, into)
    else restoreRun(group, keys, isTagged ? (untagged(values) as unknown[]) : values, wanted, into)
    note(change.touched, group, keys)
  }
}

function restoreRun(
  group: number,
  keys: readonly Key[],
  values: readonly unknown[],
  wanted: ((key: Key) => boolean) | null,
  into: Restored,
): void {
  if (keys.length !== values.length) throw new RangeError(`${keys.length} keys, ${values.length} values`)
  for (let i = 0; i < keys.length; i++) if (wanted === null || wanted(keys[i])) into.restore(group, keys[i], values[i])
}

function unrestoreRun(
  group: number,
  keys: readonly Key[],
  wanted: ((key: Key) => boolean) | null,
  into: Restored,
): void {
  for (const key of keys) if (wanted === null || wanted(key)) into.unrestore(group, key)
}

function note(touched: Map<number, Key[]>, group: number, keys: readonly Key[]): void {
  const into = touched.get(group)
  if (into === undefined) touched.set(group, [...keys])
  else for (const key of keys) into.push(key)
}
