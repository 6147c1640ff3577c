/**
 * The promote step as a function; see `lib/epoch/promote.ts`.
 */
import { promote } from '../lib/epoch/promote.ts'
import { step } from './runtime.ts'

/** What Lambda calls. */
export const run = step('promote', promote)
