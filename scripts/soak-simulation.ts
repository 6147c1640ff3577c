/**
 * The long simulation: many seeds, and every fault at every call with a second process that dies as well.
 *
 * `SEEDS` (50,000 by default, spread over all sample pipelines), `FROM` (first seed), `SECOND_EVERY` (distance of the
 * second crashes, 7 by default; 1 for all, 0 to leave the enumeration out). Prints what was run, and ends with code 1
 * and the story of the first failure.
 */
import { everyFault, exhaust, simulate } from '../lib/testing/index.ts'
import { exhaustiveCases } from '../test/simulation/exhaustive-cases.ts'
import { samples } from '../test/simulation/pipelines.ts'

const seeds = Number(process.env.SEEDS ?? 50_000)
const from = Number(process.env.FROM ?? 1_000_000)
const secondEvery = Number(process.env.SECOND_EVERY ?? 7)

async function swarm(): Promise<void> {
  const total = { epochs: 0, processes: 0, calls: 0, faults: 0, healed: 0, unconfirmed: 0, carried: 0 }
  const each = Math.ceil(seeds / Object.keys(samples).length)
  for (const [name, sample] of Object.entries(samples)) {
    for (let seed = from; seed < from + each; seed++) {
      const { pipeline, input } = sample(seed)
      const one = await simulate(pipeline, { seed, input })
      for (const part of Object.keys(total) as (keyof typeof total)[]) total[part] += one[part]
    }
    console.log(`${name}: ${each} seeds, so far ${JSON.stringify(total)}`)
  }
}

async function enumeration(): Promise<void> {
  let all = 0
  for (const { name, sample, options } of exhaustiveCases) {
    const { calls, runs } = await exhaust(sample.pipeline, { input: sample.input, ...options, secondEvery })
    all += runs
    console.log(`${name}: ${calls} calls × ${everyFault.length} faults × second crashes = ${runs} runs, so far ${all}`)
  }
}

try {
  await swarm()
  if (secondEvery > 0) await enumeration()
  console.log('none failing')
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
