/**
 * What every ledger asks of a write before it tries it.
 *
 * A head that breaks these never came from the protocol, so the write stops with `ASSERTION_FAILED` before
 * anything is stored. Kept here so that all ledgers refuse the same.
 */
import { assert } from '../../model/assert.ts'
import type { Head, HistoryItem } from '../../model/head.ts'
import type { SwapOptions } from '../../ports/ledger.ts'

const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0

/** A first head brings the history item of epoch 0. */
export function assertCreatable(head: Head, history: HistoryItem): void {
  assert(head.pipeline !== '', 'a head names its pipeline')
  assert(isCount(head.revision), `revision ${head.revision} is no count`)
  assert(history.epoch === 0, `a pipeline begins with epoch 0, not ${history.epoch}`)
}

/** Each write counts the revision up by one; history and wakes are counts. */
export function assertSwappable(expected: number, head: Head, options: SwapOptions | undefined): void {
  assert(head.pipeline !== '', 'a head names its pipeline')
  assert(isCount(expected), `revision ${expected} is no count`)
  assert(head.revision === expected + 1, `revision ${head.revision} does not follow ${expected}`)
  const { history, wakes } = options ?? {}
  assert(history === undefined || isCount(history.epoch), `epoch ${history?.epoch} is no count`)
  assert(wakes === undefined || isCount(wakes), `wake counter ${wakes} is no count`)
}

/** A range of epochs `[from, to)`. */
export function assertEpochRange(from: number, to: number): void {
  assert(isCount(from) && Number.isSafeInteger(to), `[${from}, ${to}) is no range of epochs`)
}
