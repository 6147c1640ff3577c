/**
 * What the tests of state share: a scope, and a pretended store that keeps the files of one snapshot.
 */
import { createHash } from 'node:crypto'
import type { Snapshot } from '../../lib/model/manifest.ts'
import type { StateScope } from '../../lib/state/aggregate-state.ts'
import type { OperatorState } from '../../lib/state/operator-state.ts'

export const scope: StateScope = { operator: 'count', stateVersion: 1, keyGroups: [0, 128], totalKeyGroups: 128 }

/** A committed snapshot with the bytes of its files. */
export interface Stored {
  readonly snapshot: Snapshot | null
  readonly files: readonly Buffer[]
}

export const nothingStored: Stored = { snapshot: null, files: [] }

let sequence = 0

/** What is stored after a commit of `state` on top of `parent`; the state is settled. */
export function commit(state: OperatorState, parent: Stored): Stored {
  const encoded = state.encode(parent.snapshot)
  state.settle()
  if (encoded === null) return parent
  const bytes = Buffer.concat(encoded.chunks)
  const listed = {
    name: `file-${sequence++}`,
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    file: encoded.file,
    entries: encoded.entries,
  }
  const { operator, stateKind, stateVersion, keyGroups } = state
  const files = [...(parent.snapshot?.files ?? []).slice(0, encoded.keep), listed]
  return {
    snapshot: { operator, stateKind, stateVersion, keyGroups, files },
    files: [...parent.files.slice(0, encoded.keep), bytes],
  }
}
