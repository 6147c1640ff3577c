/**
 * The plan step as a function; see `lib/epoch/plan.ts`. Starts runs, since it hands over to fresh executions.
 */
import { plan } from '../lib/epoch/plan.ts'
import { launcherOf } from './launcher.ts'
import { step } from './runtime.ts'

/** What Lambda calls. */
export const run = step('plan', plan, launcherOf)
