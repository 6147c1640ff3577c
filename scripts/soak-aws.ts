/**
 * The soak of a deployment: an emulator of AWS and a broker, `cdk deploy`, and an ordeal that the fold must survive.
 *
 * Called by `npm run soak`; alone:
 *
 *     npm run soak -- --only aws [--lines N] [--kills N] [--seed N]
 */
import { fileURLToPath } from 'node:url'
import { bootstrap, deploy } from '../test/support/deployed.ts'
import { deployedOrdeal, type Ordeal, type OrdealOptions } from '../test/support/deployed-ordeal.ts'
import { startDisturbed } from '../test/support/disturbed.ts'
import { startBroker } from '../test/support/kafka-broker.ts'
import { asAdmin } from '../test/support/kafka-topics.ts'

const entry = fileURLToPath(new URL('../test/support/deployed-count.ts', import.meta.url))

/** Brings everything up, runs the ordeal, and takes everything down. */
export async function soakAws(options: OrdealOptions): Promise<Ordeal> {
  const [disturbed, broker] = await Promise.all([startDisturbed(() => {}), startBroker()])
  try {
    const topics = ['lines', 'word-counts'].map((topic) => ({ topic, numPartitions: 4 }))
    await asAdmin(broker, (admin) => admin.createTopics({ topics, waitForLeaders: true }))
    const { emulator } = disturbed
    await bootstrap({ emulator, broker })
    const deployed = await deploy({ emulator, broker, entry })
    try {
      return await deployedOrdeal({ disturbed, broker, deployed }, options)
    } finally {
      await deployed.close()
    }
  } finally {
    await disturbed.remove()
    await broker.remove()
  }
}
