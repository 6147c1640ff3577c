/**
 * Where topics live: brokers from the command line, secrets from the environment or a file.
 *
 * Never a secret on the command line, where every process of the machine can read it. The answer is plain data, so
 * that worker threads can be given it too. The Kafka adapter loads only when there are brokers.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { KafkaOptions } from '../adapters/kafka/cluster.ts'
import { PawlError } from '../model/errors.ts'
import type { ClusterSpec } from '../ports/spec.ts'
import type { Call, OptionSpec } from './parse-arguments.ts'

/** Options of commands that can talk to brokers. */
export const clusterOptions: Readonly<Record<string, OptionSpec>> = {
  bootstrap: { value: 'HOST:PORT,…', help: 'topics are Kafka topics of this cluster; embedded logs by default' },
  'kafka-config': { value: 'FILE', help: 'JSON with ssl, sasl and other options of kafka()' },
  stage: { value: 'NAME', help: 'environment, part of every id in a shared cluster; dev by default' },
}

/** What the help of such commands says below its options. */
export const clusterNotes: readonly string[] = [
  'secrets come from --kafka-config FILE or from the environment, never from the command line:',
  '  PAWL_KAFKA_SASL_MECHANISM (plain, scram-sha-256, scram-sha-512), PAWL_KAFKA_USERNAME, PAWL_KAFKA_PASSWORD,',
  '  PAWL_KAFKA_MSK_REGION (MSK IAM), PAWL_KAFKA_SSL=1, PAWL_KAFKA_CA, PAWL_KAFKA_CERT, PAWL_KAFKA_KEY (files)',
]

/** Environment name when none is given. */
export const defaultStage = 'dev'

type Environment = Call['env']

/** What to tell the Kafka adapter; null for the embedded place. Throws `COMMAND_INVALID`, naming what is wrong. */
export function kafkaOptionsOf({ options, env }: Pick<Call, 'options' | 'env'>): KafkaOptions | null {
  const bootstrap = options.text('bootstrap')
  const file = options.text('kafka-config')
  if (bootstrap === undefined && file === undefined) return null
  const config = file === undefined ? {} : readConfig(file)
  const brokers = bootstrap ?? config.brokers
  if (brokers === undefined) throw invalid(`${file} names no brokers: add --bootstrap`)
  return { ...config, ...security(env), brokers }
}

/** The cluster that these options describe. */
export async function clusterOf(options: KafkaOptions | null): Promise<ClusterSpec | null> {
  return options === null ? null : (await import('../adapters/kafka/cluster.ts')).kafka(options)
}

function readConfig(file: string): Partial<KafkaOptions> {
  let config: unknown
  try {
    config = JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    // What JSON.parse says may quote the file, and with it a secret.
    throw invalid(existsSync(file) ? `${file} is no JSON` : `there is no file ${file}`)
  }
  if (typeof config !== 'object' || config === null || Array.isArray(config)) throw invalid(`${file} is no JSON object`)
  return withFiles(config as Partial<KafkaOptions>, dirname(resolve(file)))
}

/** `ssl.ca`, `cert` and `key` may name files beside the configuration. */
function withFiles(config: Partial<KafkaOptions>, directory: string): Partial<KafkaOptions> {
  const { ssl } = config
  if (typeof ssl !== 'object' || ssl === null) return config
  const read = (value: unknown) =>
    typeof value !== 'string' || value.includes('-----BEGIN') ? value : readText(resolve(directory, value))
  const files = Object.fromEntries(
    Object.entries(ssl).map(([name, value]) => [name, /^(ca|cert|key)$/.test(name) ? read(value) : value]),
  )
  return { ...config, ssl: files }
}

function security(env: Environment): Partial<KafkaOptions> {
  const sasl = saslOf(env)
  const ssl = sslOf(env)
  return { ...(sasl === undefined ? {} : { sasl }), ...(ssl === undefined ? {} : { ssl }) }
}

function saslOf(env: Environment): KafkaOptions['sasl'] {
  const region = env.PAWL_KAFKA_MSK_REGION
  if (region !== undefined) return { mechanism: 'aws-iam', region }
  const { PAWL_KAFKA_USERNAME: username, PAWL_KAFKA_PASSWORD: password } = env
  if (username === undefined && password === undefined) return undefined
  if (username === undefined) throw invalid('PAWL_KAFKA_PASSWORD is set, PAWL_KAFKA_USERNAME is not')
  if (password === undefined) throw invalid('PAWL_KAFKA_USERNAME is set, PAWL_KAFKA_PASSWORD is not')
  const mechanism = env.PAWL_KAFKA_SASL_MECHANISM ?? 'scram-sha-512'
  if (mechanism !== 'plain' && mechanism !== 'scram-sha-256' && mechanism !== 'scram-sha-512') {
    throw invalid(`PAWL_KAFKA_SASL_MECHANISM is ${mechanism}: plain, scram-sha-256 and scram-sha-512 are known`)
  }
  return { mechanism, username, password }
}

function sslOf(env: Environment): KafkaOptions['ssl'] {
  const files = { ca: env.PAWL_KAFKA_CA, cert: env.PAWL_KAFKA_CERT, key: env.PAWL_KAFKA_KEY }
  const given = Object.entries(files).filter((entry): entry is [string, string] => entry[1] !== undefined)
  if (given.length > 0) return Object.fromEntries(given.map(([name, file]) => [name, readText(file)]))
  return env.PAWL_KAFKA_SSL === '1' || env.PAWL_KAFKA_SSL === 'true' ? true : undefined
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new PawlError('COMMAND_INVALID', `${file} cannot be read`, { file }, error)
  }
}

function invalid(fault: string): PawlError {
  return new PawlError('COMMAND_INVALID', fault)
}
