/**
 * The finalize step as a function; see `lib/epoch/finalize.ts`.
 */
import { finalize } from '../lib/epoch/finalize.ts'
import { step } from './runtime.ts'

/** What Lambda calls. */
export const run = step('finalize', finalize)
