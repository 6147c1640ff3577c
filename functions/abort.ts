/**
 * The abort step as a function; see `lib/epoch/abort.ts`.
 */
import { abort } from '../lib/epoch/abort.ts'
import { step } from './runtime.ts'

/** What Lambda calls. */
export const run = step('abort', abort)
