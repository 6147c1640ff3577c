/**
 * Writes the output of each `pawl cost` in docs/cost.md anew, below the command that prints it.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const page = fileURLToPath(new URL('../docs/cost.md', import.meta.url))
const root = fileURLToPath(new URL('..', import.meta.url))
const blocks = /```sh\npawl (cost .*)\n```\n\n```text\n[^`]*```/g
const written = readFileSync(page, 'utf8').replaceAll(blocks, (_, command: string) => {
  const args = ['--conditions=pawl-source', 'lib/cli/main.ts', ...command.split(' ')]
  const text = execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
  return `\`\`\`sh\npawl ${command}\n\`\`\`\n\n\`\`\`text\n${text}\`\`\``
})
writeFileSync(page, written)
