/**
 * The operate step as a function; see `lib/epoch/operate.ts`.
 */
import { operate } from '../lib/epoch/operate.ts'
import { step } from './runtime.ts'

/** What Lambda calls. */
export const run = step('operate', operate)
