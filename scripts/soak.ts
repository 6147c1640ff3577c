/**
 * The soak: real processes under `kill -9`, until it is plain that nothing is lost or repeated.
 *
 * Kafka to Kafka and log to files, each a word count whose workers are killed, doubled, stopped and let go on, while
 * its broker comes and goes; one pipeline into a topic, a table and a Delta table; what each sink takes of memory for a
 * million rows (`soak-memory.ts`); a deployment on an emulator of AWS under all of `soak-aws.ts`; then the long
 * simulation, where `soak-simulation.ts` is there. A foreign reader of the output must see the exact fold of the input,
 * epoch by epoch.
 *
 *     npm run soak -- [--only kafka|embedded|sharded|three-sinks|memory|aws|simulation] [--lines N] [--kills N] [--seed N] [--keep]
 *
 * SEEDS in the environment is how many seeds the simulation runs. Exit code 1 when anything failed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { missingEmulatorTool } from '../test/support/aws-emulator.ts'
import { missingDeltaReaders } from '../test/support/delta-readers.ts'
import { missingTool } from '../test/support/kafka-broker.ts'
import { missingPostgres } from '../test/support/postgres-server.ts'
import { type ThreeSinksOrdeal, threeSinksOrdeal } from '../test/support/three-sinks-ordeal.ts'
import { type Ordeal, type OrdealOptions, ordeal } from '../test/support/worker-ordeal.ts'
import { embeddedWorld, kafkaWorld, type World } from '../test/support/worker-world.ts'
import { soakAws } from './soak-aws.ts'
import { soakMemory } from './soak-memory.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    lines: { type: 'string', default: '500000' },
    kills: { type: 'string', default: '50' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    keep: { type: 'boolean', default: false },
  },
})
const [lines, kills, seed] = [values.lines, values.kills, values.seed].map(Number)
/** The other deeds kill as well; these come on top. */
const hardships: OrdealOptions = { seed, lines, kills, twins: 6, zombies: 3, outages: 0 }

let passed = 0
let failed = 0

await part('kafka', async () => {
  const missing = missingTool()
  if (missing !== null) throw new Error(missing)
  await endure(await kafkaWorld(), { ...hardships, outages: 4 })
})
await part('embedded', async () => endure(await embeddedWorld(), hardships))
await part('sharded', async () => endure(await embeddedWorld({ exportName: 'sharded' }), hardships))
await part('three-sinks', async () => {
  const missing = missingTool() ?? missingPostgres() ?? missingDeltaReaders()
  if (missing !== null) throw new Error(missing)
  const result = await threeSinksOrdeal({ seed, kills, say: (line) => console.log(`  ${line}`) })
  console.log(figuresOfThree(result))
  if (result.faults.length > 0) throw new Error(result.faults.join('\n  '))
})
await part('memory', async () => soakMemory((line) => console.log(`  ${line}`)))
await part('aws', async () => {
  const missing = missingTool() ?? missingEmulatorTool()
  if (missing !== null) throw new Error(missing)
  const figures = await soakAws({ seed, lines, kills, say: (line) => console.log(`  ${line}`) })
  console.log(tableOf(figures))
})
const simulation = fileURLToPath(new URL('soak-simulation.ts', import.meta.url))
if (existsSync(simulation))
  await part('simulation', async () => {
    const { status } = spawnSync(process.execPath, [...process.execArgv, simulation], { stdio: 'inherit' })
    if (status !== 0) throw new Error(`the simulation ended with ${status}`)
  })
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed > 0 ? 0 : 1)

async function part(name: string, run: () => Promise<void>): Promise<void> {
  if (values.only !== undefined && values.only !== name) return
  console.log(`\n${name}, seed ${seed}`)
  try {
    await run()
    passed++
  } catch (error) {
    failed++
    console.log(`  FAILED: ${error instanceof Error ? error.message : String(error)}`)
  }
}

async function endure(world: World, options: OrdealOptions): Promise<void> {
  let isSound = false
  try {
    const result = await ordeal(world, { ...options, say: (line) => console.log(`  ${line}`) })
    console.log(figuresOf(result))
    if (result.faults.length > 0) throw new Error(result.faults.join('\n  '))
    isSound = true
  } finally {
    if (isSound && !values.keep) await world.remove()
    else {
      await world.broker?.stop()
      console.log(`  everything is in ${world.directory}`)
    }
  }
}

function figuresOf(result: Ordeal): string {
  const { recoveriesMs, standbyCpu, faults } = result
  const at = (share: number) => recoveriesMs[Math.floor((recoveriesMs.length - 1) * share)]
  const cpu = standbyCpu.reduce((sum, share) => sum + share, 0) / Math.max(1, standbyCpu.length)
  const rows: readonly (readonly [string, string | number])[] = [
    ['lines', result.lines],
    ['words', result.words],
    ['rows shown', result.rows],
    ['epochs', result.epochs],
    ['attempts died', result.died],
    ['kill -9', result.kills],
    ['two at once', result.twins],
    ['zombies', result.zombies],
    ['broker gone', result.outages],
    ['takeovers', result.takeovers],
    ['kill to output', `median ${at(0.5)} ms, longest ${at(1)} ms, ${recoveriesMs.length} measured`],
    ['standing by', `${(100 * cpu).toFixed(1)} % of a core`],
    ['wall time', `${result.seconds.toFixed(1)} s`],
    ['verdict', faults.length === 0 ? 'the exact fold of the input' : `${faults.length} faults`],
  ]
  return tableOf(rows)
}

function figuresOfThree(result: ThreeSinksOrdeal): string {
  const { looks, faults } = result
  return tableOf([
    ['kill -9', result.kills],
    ['payments', result.payments],
    ['epochs', result.epochs],
    ['looks', `${looks.changes} at the topic, ${looks.table} at the table, ${looks.lake} at the Delta table`],
    ['sinks apart', `${result.apart} looks`],
    ['half promoted', `${result.unpromoted} kills`],
    ['wall time', `${result.seconds.toFixed(1)} s`],
    ['verdict', faults.length === 0 ? 'whole epochs always, all agree in the end' : `${faults.length} faults`],
  ])
}

function tableOf(rows: readonly (readonly [string, string | number])[]): string {
  return rows.map(([label, value]) => `  ${label.padEnd(16)}${value.toLocaleString('en-US')}`).join('\n')
}
