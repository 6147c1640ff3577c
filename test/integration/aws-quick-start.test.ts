/**
 * The first hour of docs/getting-started.md, on an emulator: deployed, fed by its own function, counted and audited.
 *
 * The cluster is a broker that is there: an emulator makes none. The stack as it is for an account is a template test.
 */
import { expect } from 'vitest'
import { awsTest } from '../support/aws.ts'
import { bootstrap, deploy } from '../support/deployed.ts'
import { missingTool, sharedBroker } from '../support/kafka.ts'
import { runPawl } from '../support/worker-process.ts'

const tick = { source: 'aws.events', 'detail-type': 'Scheduled Event' }

awsTest(
  'the quick start makes its topics, feeds itself, counts every word once and is sound',
  async ({ emulator, skip }) => {
    const missing = missingTool()
    if (missing !== null) skip(missing)
    const broker = await sharedBroker()
    await bootstrap({ emulator, broker })
    const first = await deploy({ emulator, broker, stageName: 'first', quickStart: true })
    try {
      // Topics were made while the stack was deployed, before the pipeline that needs them; feeding finds them there.
      await first.invoke('TriggerName', tick)
      expect(await first.invoke('FeederName', { lines: 1000 })).toEqual({ lines: 1000 })
      await first.invoke('TriggerName', tick)
      await first.untilAtRest(60_000)
      const words = ['--stack', 'pawl-quick-start-first']
      const env = { env: emulator.environment }
      const epochs = await runPawl(['epochs', '--json', ...words], env)
      const { epochs: list } = JSON.parse(epochs.stdout) as { epochs: { counts: { in: number } | null }[] }
      expect(list.reduce((sum, { counts }) => sum + (counts?.in ?? 0), 0)).toBe(1000)
      const verified = await runPawl(['verify', ...words], env)
      expect(verified.stdout).toMatch(/^verdict +sound$/m)
      const { faults } = await first.verify()
      expect(faults).toEqual([])
    } finally {
      await first.close()
    }
  },
  240_000,
)
