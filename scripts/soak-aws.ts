/**
 * The soak of a deployment: an emulator of AWS and a broker, `cdk deploy`, and an ordeal that the fold must survive.
 *
 * Called by `npm run soak`; alone:
 *
 *     npm run soak -- --only aws [--lines N] [--kills N] [--seed N]
 */
import { fileURLToPath } from 'node:url'
import { bootstrap, deploy } from '../test/support/deployed.ts'
import { deployedOrdeal, type Ordeal } from '../test/support/deployed-ordeal.ts'
import { startDisturbed } from '../test/support/disturbed.ts'
import { startBroker } from '../test/support/kafka-broker.ts'
import { asAdmin } from '../test/support/kafka-topics.ts'

const entry = fileURLToPath(new URL('../test/support/deployed-count.ts', import.meta.url))

/** How long and how hard; the other deeds follow from the kills. */
export interface SoakAwsOptions {
  readonly seed: number
  readonly lines: number
  readonly kills: number
  readonly say: (line: string) => void
}

/** Kills at least; fewer would leave the moments to chance. */
const killsMin = 30
/** More would measure the emulator. */
const linesMax = 60_000

/** Brings everything up, runs the ordeal, takes everything down; answers with figures. Throws what is wrong. */
export async function soakAws({ seed, lines, kills, say }: SoakAwsOptions): Promise<[string, string | number][]> {
  const [disturbed, broker] = await Promise.all([startDisturbed(() => {}), startBroker()])
  try {
    const topics = ['lines', 'word-counts'].map((topic) => ({ topic, numPartitions: 4 }))
    await asAdmin(broker, (admin) => admin.createTopics({ topics, waitForLeaders: true }))
    const { emulator } = disturbed
    await bootstrap({ emulator, broker })
    const deployed = await deploy({ emulator, broker, entry })
    try {
      const deeds = { kills: Math.max(killsMin, kills), stops: 8, twins: 6, late: 4, brokers: 3, emulators: 2 }
      const options = { ...deeds, seed, lines: Math.min(linesMax, lines), say }
      const result = await deployedOrdeal({ disturbed, broker, deployed }, options)
      if (result.faults.length > 0) throw new Error(result.faults.join('\n  '))
      return figuresOf(result)
    } finally {
      await deployed.close()
    }
  } finally {
    await disturbed.remove()
    await broker.remove()
  }
}

function figuresOf(result: Ordeal): [string, string | number][] {
  const { done, rings } = result
  return [
    ['lines', result.lines],
    ['words', result.words],
    ['rows shown', result.rows],
    ['epochs', result.epochs],
    ['workers killed', done.kills],
    ['stopped', `${done.stops} executions`],
    ['two at once', done.twins],
    ['late writes', done.late],
    ['broker gone', done.brokers],
    ['emulator gone', done.emulators],
    ['rings', `${rings.sent}: ${rings.dropped} dropped, ${rings.doubled} doubled, ${rings.held} held back`],
    ['calls', `${result.calls}, ${result.wrongCalls} went wrong`],
    ['generations', result.generations],
    ['wall time', `${result.seconds.toFixed(1)} s`],
    ['verdict', 'the exact fold of the input'],
  ]
}
