/**
 * What checks throw, and what they check: the committed chain.
 *
 * Apart from the checks because they are several, and the audit's driver knows them by what they throw.
 */
import type { Head, HistoryItem } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'

/** The head with all committed epochs, in order. */
export interface Chain {
  readonly head: Head
  readonly items: readonly HistoryItem[]
  readonly manifests: readonly Manifest[]
}

/** Thrown by checks; its message is the broken invariant. */
export class Broken extends Error {
  override readonly name = 'Broken'
}

/** Throws `Broken` with the invariant unless the condition holds. */
export function mustHoldThat(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new Broken(invariant)
}
