/**
 * `npm run aws:up`: an AWS and a Kafka of one's own, on loopback, until `npm run aws:down`.
 *
 * The emulator is installed from PyPI into a virtual environment, the broker from Maven, each once.
 */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { missingEmulatorTool } from '../../test/support/aws-emulator.ts'
import { missingTool } from '../../test/support/kafka-broker.ts'
import { findLocal, type LocalAws, logFile, perform, root, say } from './local.ts'

await perform(async () => {
  const known = findLocal()
  if (known !== null) return tell(known, 'it is up already')
  const missing = missingTool() ?? missingEmulatorTool()
  if (missing !== null) throw new Error(missing)
  tell(await startKeeper(), 'it is up')
})

async function startKeeper(): Promise<LocalAws> {
  const file = logFile('keeper')
  writeFileSync(file, '')
  const log = openSync(file, 'a')
  const keeper = spawn(process.execPath, [...process.execArgv, join(root, 'scripts', 'aws', 'keeper.ts')], {
    detached: true,
    cwd: root,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  keeper.unref()
  let told = 0
  for (;;) {
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    for (const line of lines.slice(told)) if (/^(installs|starts) /.test(line)) say(line)
    told = lines.length
    const local = findLocal()
    if (local !== null) return local
    if (keeper.exitCode !== null) throw new Error(`it did not start: ${lines.at(-1) ?? ''} (all of it is in ${file})`)
    await sleep(100)
  }
}

function tell({ environment, bootstrapServers }: LocalAws, state: string): void {
  say(`${state}: AWS at ${environment.AWS_ENDPOINT_URL}, Kafka at ${bootstrapServers}`)
  say('npm run aws:deploy deploys the word count, npm run aws:demo feeds it, npm run aws:down ends it all')
  say('for other programs of AWS in this shell:')
  for (const [name, value] of Object.entries(environment)) console.log(`    export ${name}=${value}`)
}
