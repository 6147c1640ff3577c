/**
 * `npm run aws:down`: ends what `aws:up` started, and forgets it.
 */
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { findLocal, localFile, perform, say } from './local.ts'

const patienceMs = 20_000

await perform(async () => {
  const local = findLocal()
  rmSync(localFile, { force: true })
  if (local === null) return say('nothing is up')
  process.kill(local.pid, 'SIGTERM')
  for (const until = Date.now() + patienceMs; isAlive(local.pid); await sleep(50)) {
    if (Date.now() > until) process.kill(local.pid, 'SIGKILL')
  }
  say('emulator, broker and poller have ended, with all that they held')
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
