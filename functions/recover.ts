/**
 * Asks the brokers for what events lack, on a schedule, from where they can be reached; see `lib/places/intake.ts`.
 *
 * What the brokers said last time is kept warm only to tell what is late from what is on its way: losing it costs time.
 */
import { recover } from '../lib/places/intake.ts'
import type { LogSource } from '../lib/ports/log.ts'
import { brokers, contextOf, onJob } from './runtime.ts'

const ends = new Map<string, ReadonlyMap<number, bigint>>()

/** What Lambda calls. */
export const run = onJob(async (job, _event: unknown) => {
  const cluster = brokers()
  const opened: LogSource[] = []
  const open = async (id: string) => {
    const source = await cluster.openSource(job.compiled.sources[id]!, contextOf(job))
    opened.push(source)
    return source
  }
  try {
    return await recover(job, { open, ends })
  } finally {
    for (const source of opened) await source.close()
  }
})
