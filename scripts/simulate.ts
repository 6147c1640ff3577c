/**
 * `npm run simulate -- --seed N`: an example in a hostile world, with its trace.
 *
 * Only names the file: `pawl simulate` does the rest and takes the same options. Another pipeline file may be given
 * first.
 */
import { fileURLToPath } from 'node:url'
import { startCommand } from '../lib/cli/start.ts'

const [first, ...rest] = process.argv.slice(2)
const named = first !== undefined && !first.startsWith('-')
const example = fileURLToPath(new URL('../examples/word-count/pipeline.ts', import.meta.url))

await startCommand(named ? ['simulate', first, ...rest] : ['simulate', example, ...process.argv.slice(2)])
