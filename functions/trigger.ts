/**
 * The trigger as a function: events of mappings, schedule and executions come in, rings go out; see
 * `lib/epoch/wake.ts`. A failure is the sender's to repeat.
 */
import { wake } from '../lib/epoch/wake.ts'
import { wakeOf } from '../lib/model/wake.ts'
import { launcherOf } from './launcher.ts'
import { onJob } from './runtime.ts'

/** What Lambda calls. */
export const run = onJob((job, event: unknown) => wake(job, wakeOf(event)), launcherOf)
