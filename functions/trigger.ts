/**
 * The trigger as a function: events of mappings, schedule and executions come in, rings go out; see
 * `lib/epoch/wake.ts`. With an intake of events their records are durable before anything rings. A failure is the
 * sender's to repeat.
 */
import { wake } from '../lib/epoch/wake.ts'
import { wakeOf } from '../lib/model/wake.ts'
import { takeIn } from '../lib/places/intake.ts'
import { launcherOf } from './launcher.ts'
import { onJob, takesEventsIn } from './runtime.ts'

/** What Lambda calls. */
export const run = onJob(async (job, event: unknown) => {
  if (takesEventsIn) await takeIn(job, event)
  return wake(job, wakeOf(event))
}, launcherOf)
