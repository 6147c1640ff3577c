/**
 * What every benchmark stands on: a broker as in production, and parts that run as processes of their own.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Broker, startBroker } from '../test/support/kafka-broker.ts'

/** A broker that runs as in production, not as in tests, where it must start fast and stay small. */
export async function productionBroker(): Promise<Broker> {
  const before = process.env._JAVA_OPTIONS
  process.env._JAVA_OPTIONS = '-XX:TieredStopAtLevel=4 -Xmx1g'
  try {
    return await startBroker({ properties: { 'log.retention.check.interval.ms': 300_000 } })
  } finally {
    if (before === undefined) delete process.env._JAVA_OPTIONS
    else process.env._JAVA_OPTIONS = before
  }
}

/** Runs a script of `bench/parts`; answers with its name and what it printed. */
export async function runPart(part: readonly string[], bootstrap: string): Promise<[name: string, output: string]> {
  const [script, ...args] = part
  const path = fileURLToPath(new URL(`parts/${script}`, import.meta.url))
  const env = { ...process.env, KAFKA_BROKERS: bootstrap }
  const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=pawl-source', path, ...args], { env })
  return [`bench/parts/${part.join(' ')}`, stdout]
}
