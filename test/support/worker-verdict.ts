/**
 * The verdict on a word count whose workers were killed: the exact fold of its input, epoch by epoch.
 *
 * What each epoch must show follows from the input and from where the epochs were cut: the words of its ranges, each
 * with its count so far. So a row too many, a row too few, a count that was shown in a wrong epoch and one that was
 * repeated are all told apart, and nothing of what the pipeline computed is believed.
 */
import { wordsOf } from '../../examples/word-count/pipeline.ts'
import type { Manifest } from '../../lib/model/manifest.ts'

/** A row as a foreign reader saw it. */
export interface ShownRow {
  readonly word: string
  readonly count: number
}

/** What is held against each other. */
export interface Evidence {
  /** Lines by partition, in order of their offsets from 0. */
  readonly input: readonly (readonly string[])[]
  /** From the genesis on. */
  readonly manifests: readonly Manifest[]
  /** In an order that keeps the rows of a word as the sink shows them. */
  readonly rows: readonly ShownRow[]
}

/** What was found. */
export interface Verdict {
  readonly epochs: number
  readonly lines: number
  readonly words: number
  readonly rows: number
  /** What is wrong, one sentence each; empty when all is well. */
  readonly faults: readonly string[]
}

const faultsShown = 20

/** Judges the output of a pipeline that has caught up with its input. */
export function judgeOutput({ input, manifests, rows }: Evidence): Verdict {
  const faults: string[] = []
  const ends = input.map(() => 0)
  const counts = new Map<string, number>()
  const expected = new Map<string, number[]>()
  for (const { epoch, progress, counts: counted } of manifests.slice(1)) {
    const seen = new Set<string>()
    let records = 0
    for (const { partition, start, end } of progress) {
      if (Number(start) !== ends[partition])
        faults.push(`epoch ${epoch} reads partition ${partition} from ${start}, ${ends[partition]} comes next`)
      for (let offset = ends[partition]; offset < Number(end); offset++, records++)
        for (const word of wordsOf(input[partition][offset] ?? '')) {
          counts.set(word, (counts.get(word) ?? 0) + 1)
          seen.add(word)
        }
      ends[partition] = Number(end)
    }
    for (const word of seen) listOf(expected, word).push(counts.get(word)!)
    const out = Object.values(counted.out).reduce((sum, number) => sum + number, 0)
    if (out !== seen.size) faults.push(`epoch ${epoch} counts ${out} rows out, its words are ${seen.size}`)
    if (counted.in !== records)
      faults.push(`epoch ${epoch} counts ${counted.in} records in, its ranges hold ${records}`)
  }
  for (const [partition, lines] of input.entries())
    if (lines.length !== ends[partition])
      faults.push(`partition ${partition} has ${lines.length} lines, ${ends[partition]} were counted`)
  faults.push(...differences(expected, rows))
  return {
    epochs: manifests.length - 1,
    lines: ends.reduce((sum, end) => sum + end, 0),
    words: counts.size,
    rows: rows.length,
    faults: faults.slice(0, faultsShown),
  }
}

function differences(expected: ReadonlyMap<string, readonly number[]>, rows: readonly ShownRow[]): string[] {
  const shown = new Map<string, number[]>()
  for (const { word, count } of rows) listOf(shown, word).push(count)
  const faults: string[] = []
  for (const word of new Set([...expected.keys(), ...shown.keys()])) {
    const [wanted, found] = [expected.get(word) ?? [], shown.get(word) ?? []]
    const at = Math.max(wanted.length, found.length)
    const first = Array.from({ length: at }, (_, i) => i).find((i) => wanted[i] !== found[i])
    if (first === undefined) continue
    const [want, have] = [wanted, found].map((list) => (first < list.length ? String(list[first]) : 'nothing'))
    const last = `its last count is ${found.at(-1) ?? 'none'}, it occurs ${wanted.at(-1) ?? 0} times`
    faults.push(`${word} shows ${have} as row ${first + 1}, where ${want} must stand; ${last}`)
  }
  return faults
}

function listOf(lists: Map<string, number[]>, word: string): number[] {
  const found = lists.get(word)
  if (found) return found
  const list: number[] = []
  lists.set(word, list)
  return list
}
