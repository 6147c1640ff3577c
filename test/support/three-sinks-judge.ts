/**
 * What three sinks may show of the payments: the rows of the first k epochs, for one k, and nothing else.
 *
 * Which payments an epoch holds follows from its manifest, what they come to is computed here; nothing that the pipeline
 * computed is believed.
 */
import type { Manifest } from '../../lib/model/manifest.ts'

/** A payment as it was sent. */
export interface Payment {
  readonly account: string
  readonly cents: number
}

/** A change as a reader of a sink sees it. */
export interface Change {
  readonly account: string
  readonly payments: number
  readonly cents: number
}

const textOf = ({ account, payments, cents }: Change) => `${account} ${payments} ${cents}`

/** Knows what each epoch must show. */
export class Judge {
  /** By partition, in order of their offsets. */
  readonly input: readonly Payment[][]
  readonly #balances = new Map<string, Change>()
  readonly #ends: number[]
  /** All changes, epoch after epoch, and how many there are after each epoch. */
  readonly #changes: string[] = []
  readonly #lengths: number[] = []
  /** The table after each epoch. */
  readonly #tables: string[] = []

  constructor(partitions: number) {
    this.input = Array.from({ length: partitions }, () => [])
    this.#ends = this.input.map(() => 0)
  }

  /** The newest epoch that is known. */
  get newest(): number {
    return this.#tables.length - 1
  }

  /** Payments of the epochs that are known. */
  get counted(): number {
    return this.#ends.reduce((sum, end) => sum + end, 0)
  }

  /** Takes the manifests that are new. */
  learn(manifests: readonly Manifest[]): void {
    for (const { progress } of manifests.slice(this.#tables.length)) {
      const touched = new Set<string>()
      for (const { partition, end } of progress) {
        for (; this.#ends[partition]! < Number(end); this.#ends[partition]!++) {
          const { account, cents } = this.input[partition]![this.#ends[partition]!]!
          const before = this.#balances.get(account) ?? { account, payments: 0, cents: 0 }
          this.#balances.set(account, { account, payments: before.payments + 1, cents: before.cents + cents })
          touched.add(account)
        }
      }
      for (const account of touched) this.#changes.push(textOf(this.#balances.get(account)!))
      this.#lengths.push(this.#changes.length)
      this.#tables.push(tableText([...this.#balances.values()]))
    }
  }

  /** The last epoch that these changes show, all before it included; null when it is no whole number of epochs. */
  epochOfChanges(rows: readonly Change[]): number | null {
    const epoch = this.#lengths.lastIndexOf(rows.length)
    if (epoch < 0) return null
    const expected = this.#changes.slice(0, rows.length).sort()
    const shown = rows.map(textOf).sort()
    return shown.every((text, i) => text === expected[i]) ? epoch : null
  }

  /** The last epoch that a table of balances shows. */
  epochOfTable(rows: readonly Change[]): number | null {
    const epoch = this.#tables.lastIndexOf(tableText(rows))
    return epoch < 0 ? null : epoch
  }
}

function tableText(rows: readonly Change[]): string {
  return rows.map(textOf).sort().join('\n')
}
