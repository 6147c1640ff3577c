/**
 * Bids: how many bids an auction got in each ten seconds, and what they come to.
 *
 * Event time: a bid counts where its own clock puts it, not where it happens to arrive.
 */
import { json, pipeline, text, topic, tumbling } from 'pawl'

const bids = topic('bids', { value: json<{ auction: string; cents: number; atMs: number }>() })
const totals = topic('bid-totals', { key: text(), value: json() })
const lateBids = topic('late-bids', { key: text(), value: json() })

export default pipeline('bids', { checkpoint: { intervalMs: 200 } })
  // A bid may be up to two seconds behind the newest one of its partition and is not late yet.
  .from(bids, { timestamp: (bid) => bid.atMs, maxOutOfOrdernessMs: 2_000 })
  .keyBy((bid) => bid.auction)
  // A window's total is written when it closes; bids that come up to five seconds later correct it.
  .window(tumbling({ sizeMs: 10_000, allowedLatenessMs: 5_000 }))
  .aggregate('totals', {
    create: () => ({ count: 0, sum: 0 }),
    add: ({ count, sum }, bid) => ({ count: count + 1, sum: sum + bid.cents }),
    result: (total, { key, window }) => ({ at: `${key}@${window.startMs}`, total }),
  })
  // What comes even later is not dropped: it goes its own way.
  .sideOutput('late', (late) => late.to('late-bids', lateBids))
  .withKey(({ at }) => at)
  .map(({ total }) => total)
  .to('bid-totals', totals)
