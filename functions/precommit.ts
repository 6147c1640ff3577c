/**
 * The precommit step as a function; see `lib/epoch/precommit.ts`.
 */
import { precommit } from '../lib/epoch/precommit.ts'
import { step } from './runtime.ts'

/** What Lambda calls. */
export const run = step('precommit', precommit)
