/**
 * Deletes what no root reaches, on a schedule; see `lib/epoch/collect.ts`. A pipeline that never ran has nothing.
 */
import { collect } from '../lib/epoch/collect.ts'
import { onJob } from './runtime.ts'

/** What Lambda calls. */
export const run = onJob(async (job, _event: unknown) => {
  const head = await job.place.ledger.read(job.compiled.topology.pipeline)
  return head === null ? null : collect(job)
})
