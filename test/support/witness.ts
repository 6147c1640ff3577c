/**
 * Calls the Java client as a witness, see `Witness.java`. Needs a JDK, not only a JRE.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { brokerClassPath } from './kafka.ts'

const program = fileURLToPath(new URL('Witness.java', import.meta.url))

/** True when Java programs can be run from source. */
export function canWitness(): boolean {
  try {
    execFileSync('javac', ['-version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export interface WitnessedRecord {
  readonly partition: number
  readonly key: string | null
  readonly value: string | null
}

/** All that a `read_committed` consumer sees of a topic. */
export function javaRead(bootstrap: string, topic: string): WitnessedRecord[] {
  return run(['read', bootstrap, topic], '').map((line) => {
    const [partition, key, value] = line.split('\t')
    return { partition: Number(partition), key: plain(key), value: plain(value) }
  })
}

/** The partition that the Java producer chooses for each key. */
export function javaPartitions(keys: readonly (readonly [key: Uint8Array, partitions: number])[]): number[] {
  const lines = keys.map(([key, partitions]) => `${partitions}\t${Buffer.from(key).toString('base64')}\n`)
  return run(['partition'], lines.join('')).map(Number)
}

function plain(base64: string): string | null {
  return base64 === '-' ? null : Buffer.from(base64, 'base64').toString()
}

function run(args: readonly string[], input: string): string[] {
  const java = ['-XX:TieredStopAtLevel=1', '-cp', brokerClassPath, program, ...args]
  const out = execFileSync('java', java, {
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
    maxBuffer: 1 << 28,
  })
  return out.split('\n').filter((line) => line !== '')
}
