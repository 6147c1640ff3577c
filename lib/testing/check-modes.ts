/**
 * The checks of what is less than exact: exactly the duplicates and losses that a mode allows, and no others.
 *
 * A sink without a marker shows rows again at least once, or loses them at most once; how often its promotion was
 * begun bounds the one, what the chain names as unconfirmed the other. Rows that a sink refuses are nowhere lost: each
 * is a dead letter, once, unless the sink was restored and refused it again under the same place.
 */
import type { MemorySink } from '../adapters/memory/sink.ts'
import type { MemoryRow } from '../adapters/memory/table.ts'
import type { RefusedLane } from '../model/manifest.ts'
import { type Chain, mustHoldThat } from './broken.ts'

/** One lane as it was found, and what the committed plans make of it. */
export interface LaneFound {
  readonly id: string
  readonly lane: number
  readonly sink: MemorySink
  /** Its rows in the order of epochs. */
  readonly wanted: readonly MemoryRow[]
  /** The epoch through which it must be complete. */
  readonly until: number
  readonly chain: Chain
  readonly carried: readonly RefusedLane[]
}

const textOf = ({ target, key, value, timestampMs }: MemoryRow) =>
  JSON.stringify([target, key?.toString('base64') ?? null, value?.toString('base64') ?? null, timestampMs])

function counted(rows: readonly MemoryRow[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const row of rows) counts.set(textOf(row), (counts.get(textOf(row)) ?? 0) + 1)
  return counts
}

/** A lane of a sink without a marker. */
export function checkUnmarked({ id, lane, sink, wanted, chain }: LaneFound): void {
  const { manifests, head } = chain
  const unconfirmed = [...manifests.flatMap((one) => one.unconfirmed ?? []), ...(head.unconfirmed?.recent ?? [])]
  const shown = sink.visible(lane)
  for (const { epoch, committables } of manifests) {
    const name = `${id}/${lane}`
    const committable = committables.find((one) => one.sink === id && one.lane === lane)
    const once = committable?.tries === 'once'
    const given = unconfirmed.filter((one) => one.sink === id && one.lane === lane && one.epoch === epoch)
    mustHoldThat(given.length <= (once ? 1 : 0), `epoch ${epoch} of lane ${name} is given up once, and at most once`)
    const tries = sink.tries(lane, epoch)
    mustHoldThat(!once || tries <= 1, `lane ${name} tries epoch ${epoch} once, not ${tries} times`)
    const copies = counted(shown.filter((row) => row.epoch === epoch))
    const expected = counted(wanted.filter((row) => row.epoch === epoch))
    for (const text of copies.keys())
      mustHoldThat(expected.has(text), `lane ${name} shows nothing in epoch ${epoch} but its rows, not ${text}`)
    for (const [text, rows] of expected) {
      const found = copies.get(text) ?? 0
      const where = `lane ${name} shows ${text} of epoch ${epoch}`
      mustHoldThat(found <= rows * tries, `${where} ${rows} times a try: ${found} in ${tries}`)
      mustHoldThat(found >= rows || given.length > 0, `${where} at least ${rows} times, not ${found}`)
    }
  }
}

/** What the lane refused of its output is carried to the dead letters, each row once while nothing was restored. */
export function checkRefused({ id, lane, sink, wanted, until, carried }: LaneFound, once: boolean): void {
  const all = carried.flatMap((one) => (one.sink === id && one.lane === lane ? one.rows : []))
  const rows = [...new Map(all.map((row) => [`${row.incarnation}/${row.epoch}/${row.row}`, row])).values()]
  mustHoldThat(!once || rows.length === all.length, `a row that lane ${id}/${lane} refused is carried once`)
  const left = new Map<string, number>()
  const count = (epoch: number, value: string | null, by: number) =>
    left.set(`${epoch} ${value}`, (left.get(`${epoch} ${value}`) ?? 0) + by)
  for (const row of wanted)
    if (row.epoch <= until && sink.refuses(row) !== null) count(row.epoch, row.value?.toString('base64') ?? null, 1)
  for (const { epoch, value } of rows) if (epoch <= until) count(epoch, value, -1)
  for (const [row, missing] of left) {
    mustHoldThat(missing <= 0, `what lane ${id}/${lane} refused becomes a dead letter: epoch ${row}`)
    mustHoldThat(missing >= 0, `what lane ${id}/${lane} did not refuse is no dead letter: epoch ${row}`)
  }
}
