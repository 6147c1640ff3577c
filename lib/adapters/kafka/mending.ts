/**
 * Mends what a coordinator ended without telling all partitions, before the transactional id is taken over.
 *
 * A coordinator that restarts takes partitions for deleted whose metadata it has not read yet: it calls a transaction
 * complete whose end they never got, and they would stay unreadable for ever. It still knows how the transaction ended
 * until somebody takes the id over. So a transaction of the **same holder** over those partitions is ended the same
 * way first, which ends the hung one with it; a crash at any point leaves the next process the same to see.
 *
 * A mending transaction that is found open is aborted by the take-over. That is how it is to end after an abort. After a
 * commit it must not be, so a note says beforehand that this holder's transaction was committed: what it has open
 * is then committed, by whoever finds it. No holder writes rows twice, so nothing else can be meant.
 */
import type { ControlPartition } from './control-partition.ts'
import { noteBatch, noteKey, saysCommitted } from './notes.ts'
import type { Mend } from './transaction.ts'
import type { TopicPartitions } from './transaction-requests.ts'

/** Where the end of a transaction can be missing. */
export interface MendPlaces {
  /** The lane's control partition, which says whether one is missing; null: there is none. */
  control(): Promise<ControlPartition | null>
  /** All partitions that a transaction of the lane may have written to. */
  targets(): Promise<readonly TopicPartitions[]>
}

/** Mends for one transactional id. */
export function mending(id: string, { control, targets }: MendPlaces): Mend {
  return async ({ state, producerId, epoch }, transaction) => {
    const committed = state === 'CompleteCommit'
    if (!committed && state !== 'CompleteAbort' && state !== 'Ongoing') return false
    const partition = await control()
    const start = (await partition?.openSince(producerId)) ?? null
    if (partition === null || start === null) return false
    const holder = { topicId: partition.topicId, producerId, epoch }
    if (state === 'Ongoing') {
      const note = await partition.lastUncommitted(noteKey(id), start)
      if (!saysCommitted(note?.value, holder)) return false
      await transaction.commit()
      return true
    }
    if (committed) await partition.append(noteBatch(id, { ...holder, start }))
    await transaction.addPartitions(await targets())
    await (committed ? transaction.commit() : transaction.abort())
    return true
  }
}
