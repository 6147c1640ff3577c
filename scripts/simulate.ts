/**
 * `npm run simulate -- --seed N`: an example in a hostile world, with its trace.
 *
 * Only names the file: `pawl simulate` does the rest and takes the same options. Another pipeline file may be given
 * first.
 */
import { fileURLToPath } from 'node:url'
import { startCommand } from '../lib/cli/start.ts'

const words = process.argv.slice(2)
const example = fileURLToPath(new URL('../examples/word-count/pipeline.ts', import.meta.url))
const file = words[0] === undefined || words[0].startsWith('-') ? [example] : []
const trace = words.some((word) => /^--seed(=|$)/.test(word)) ? ['--trace'] : []

await startCommand(['simulate', ...file, ...words, ...trace])
