/**
 * Settles one staged part: afterwards its rows are visible in Doris, once, whatever became of it before.
 *
 * All loads of a part carry one label, of which Doris commits at most one while it remembers the label. A prepared
 * load that Doris aborted by its own clock, or forgot, is prepared again from the store. Doris forgets labels some
 * hours after their end (`streaming_label_keep_max_second`, 12 h), or sooner where there are many
 * (`label_num_threshold`): so the attempt to commit is noted before it is made. A forgotten label without that note
 * was never committed; with it, nobody knows: an upsert is loaded again, which changes nothing, an append stops with
 * `LABEL_FORGOTTEN`, unless the pipeline file chose to append again.
 */
import { PawlError } from '../../model/errors.ts'
import type { Committable, StagedPart } from '../../model/manifest.ts'
import type { Store } from '../../ports/store.ts'
import { type DorisLoads, unavailable } from './loads.ts'
import { bodyOf, type DorisForm } from './rows.ts'

/** What a staged part says of itself. */
export interface DorisHandle {
  /** 1: refused rows stop the promotion; 2: it is decided which rows are left out, before the rest is committed. */
  readonly version: 1 | 2
  readonly form: DorisForm
  readonly label: string
  /** Of the load that was prepared when it was staged; null when Doris did not answer then. */
  readonly txnId: string | null
}

/** What settling needs. */
export interface SettleOptions {
  readonly loads: DorisLoads
  readonly store: Store
  readonly committable: Pick<Committable, 'sink' | 'lane' | 'epoch'>
  readonly onForgotten: 'fail' | 'append-again'
  /** Whether an attempt to commit this part was noted before. */
  readonly attempted: boolean
  /** Notes, for good, that a commit is about to be attempted. */
  noteAttempt(): Promise<void>
}

/** How often the state of a label is asked for. */
export const turnsMax = 6

/** Throws `SINK_UNAVAILABLE`, `LABEL_FORGOTTEN`, and what preparing throws. */
export async function settle(part: StagedPart, options: SettleOptions): Promise<void> {
  const { store, committable } = options
  const { form, label, txnId } = handleOf(part, committable)
  await settleLoad({ form, label, txnId, body: () => bodyOf(store, part, form) }, options)
}

/** A load under a label, and the transaction that is known to be it. */
export interface LabelledLoad {
  readonly form: DorisForm
  readonly label: string
  readonly txnId: string | null
  readonly body: () => AsyncIterable<Buffer>
}

/** Commits a load, prepared before or now. Throws as `settle`. */
export async function settleLoad(
  { form, label, txnId, body }: LabelledLoad,
  options: Omit<SettleOptions, 'store'>,
): Promise<void> {
  const { loads, committable } = options
  let { attempted } = options
  let known = txnId
  const commit = async (id: string) => {
    if (!attempted) await options.noteAttempt()
    attempted = true
    return loads.commit(form, id)
  }
  const prepare = async () => {
    known = (await loads.prepare(form, label, body))?.txnId ?? null
  }
  for (let turn = 0; turn < turnsMax; turn++) {
    const state = await loads.state(form, label)
    switch (state) {
      case 'COMMITTED':
      case 'VISIBLE':
        return
      case 'PREPARE':
        throw unavailable(committable.sink, `another load under label ${label} is under way`)
      case 'PRECOMMITTED':
        if (known !== null && (await commit(known))) return
        // Another load than the one we knew is prepared: preparing again tells which.
        await prepare()
        break
      case 'UNKNOWN':
        if (attempted && form.mode !== 'upsert' && options.onForgotten === 'fail') throw forgotten(committable, label)
        await prepare()
        break
      case 'ABORTED':
        await prepare()
        break
    }
  }
  throw unavailable(committable.sink, `the load under label ${label} keeps changing`)
}

/** The handle of a part. Throws `STEP_INPUT_INVALID` for one of another version. */
export function handleOf({ handle }: StagedPart, { sink }: { readonly sink: string }): DorisHandle {
  const known = handle as DorisHandle | null
  if (known?.version === 1 || known?.version === 2) return known
  throw new PawlError('STEP_INPUT_INVALID', `staged output of sink ${sink} is of another version`, { sink })
}

function forgotten({ sink, lane, epoch }: SettleOptions['committable'], label: string): PawlError {
  const fault = `sink ${sink}, lane ${lane}, epoch ${epoch}, label ${label}`
  return new PawlError('LABEL_FORGOTTEN', fault, { sink, lane, epoch, label })
}
