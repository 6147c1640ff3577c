/**
 * What a sink must know of a table at a version: protocol, metadata and transactions, but none of its files.
 *
 * Derived from the log by replay, never changed in place; a table of a million files costs no memory here. Source: the
 * Delta protocol, "Action Reconciliation".
 */
import type { Action, ActionKind, MetaData, Protocol } from './actions.ts'

/** A table at a version. */
export interface TableState {
  /** -1: there is no table. */
  readonly version: number
  /** SHA-256 of the newest log entry, by which a log that was restored or begun again is noticed. */
  readonly entrySha256: string
  readonly protocol: Protocol | null
  readonly metaData: MetaData | null
  readonly txns: ReadonlyMap<string, bigint>
}

/** Kinds of actions that change a state. */
export const stateKinds: ReadonlySet<ActionKind> = new Set<ActionKind>(['protocol', 'metaData', 'txn'])

/** Where nothing is. */
export const noTable: TableState = Object.freeze({
  version: -1,
  entrySha256: '',
  protocol: null,
  metaData: null,
  txns: new Map<string, bigint>(),
})

/** The state after more actions, in order. */
export function afterActions(state: TableState, actions: readonly Action[]): TableState {
  let { protocol, metaData } = state
  const txns = new Map(state.txns)
  for (const action of actions) {
    if ('protocol' in action) protocol = action.protocol
    else if ('metaData' in action) metaData = action.metaData
    else if ('txn' in action) txns.set(action.txn.appId, action.txn.version)
  }
  return { ...state, protocol, metaData, txns }
}
