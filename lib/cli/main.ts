#!/usr/bin/env node
/**
 * The `pawl` command.
 *
 * Only looks at the version of Node, before anything is loaded that an older one cannot even read; `start.ts` does
 * the rest. The exit code is 0 for success, 1 for a failure or a fault found, 2 for a command line that is not
 * understood, 3 for a parked pipeline, 4 for a paused one, 130 after Ctrl-C.
 */

import nodeModule from 'node:module'

const [major, minor] = process.versions.node.split('.').map(Number)

if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(`pawl needs Node 22.18 or newer, this is ${process.versions.node}: install a newer Node.\n`)
  process.exitCode = 1
} else {
  // What was compiled once starts five times as fast.
  nodeModule.enableCompileCache?.()
  const { startCommand } = await import('./start.ts')
  await startCommand(process.argv.slice(2))
}
