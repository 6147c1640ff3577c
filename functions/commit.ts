/**
 * The commit step as a function; see `lib/epoch/commit.ts`.
 */
import { commit } from '../lib/epoch/commit.ts'
import { step } from './runtime.ts'

/** What Lambda calls. */
export const run = step('commit', commit)
