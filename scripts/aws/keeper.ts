/**
 * Keeps a local AWS up: emulator, broker and poller live as long as this process.
 *
 * Started by `aws:up`, ended by `aws:down`. Writes `local.json` once everything answers.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmulator } from '../../test/support/aws-emulator.ts'
import { startBroker } from '../../test/support/kafka-broker.ts'
import { type LocalAws, localFile, root } from './local.ts'

const parts: (() => Promise<void> | void)[] = []
process.once('SIGTERM', end)
process.once('SIGINT', end)

console.log('installs and starts the emulator')
const emulator = await startEmulator()
parts.push(() => emulator.remove())
console.log('installs and starts the broker')
const broker = await startBroker()
parts.push(() => broker.remove())
console.log('starts the poller')
const poller = startPoller()
parts.push(() => void poller.kill())
const local: LocalAws = {
  pid: process.pid,
  environment: emulator.environment,
  bootstrapServers: broker.bootstrap,
}
writeFileSync(localFile, JSON.stringify(local))
console.log('up')
// Nothing else keeps this process alive.
setInterval(() => {}, 1 << 30)

function startPoller(): ChildProcess {
  const script = join(root, 'scripts', 'aws', 'poller.ts')
  const child = spawn(process.execPath, [script], {
    stdio: 'inherit',
    env: { ...process.env, ...emulator.environment },
  })
  child.once('exit', (code, signal) => {
    if (signal === null) console.log(`the poller ended with ${code}`)
  })
  return child
}

async function end(): Promise<void> {
  rmSync(localFile, { force: true })
  for (const part of parts.reverse()) await part()
  process.exit(0)
}
