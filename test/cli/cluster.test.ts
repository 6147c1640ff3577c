import { expect, test } from 'vitest'
import { kafkaOptionsOf } from '../../lib/cli/load-cluster.ts'
import type { Options } from '../../lib/cli/parse-arguments.ts'
import { project } from './command.ts'

const given = (texts: Readonly<Record<string, string>>): Options => ({
  text: (name) => texts[name],
  texts: () => [],
  flag: () => false,
  number: () => undefined,
})
const optionsOf = (texts: Readonly<Record<string, string>>, env: Readonly<Record<string, string>> = {}) =>
  kafkaOptionsOf({ options: given(texts), env })

test('without brokers topics are embedded', () => {
  expect(optionsOf({}, { PAWL_KAFKA_USERNAME: 'anna', PAWL_KAFKA_PASSWORD: 'x' })).toBe(null)
})

test('credentials come from the environment', () => {
  const env = { PAWL_KAFKA_USERNAME: 'anna', PAWL_KAFKA_PASSWORD: 'x', PAWL_KAFKA_SASL_MECHANISM: 'plain' }
  expect(optionsOf({ bootstrap: 'a:1,b:2' }, { ...env, PAWL_KAFKA_SSL: '1' })).toEqual({
    brokers: 'a:1,b:2',
    sasl: { mechanism: 'plain', username: 'anna', password: 'x' },
    ssl: true,
  })
  expect(optionsOf({ bootstrap: 'a:1' }, { PAWL_KAFKA_MSK_REGION: 'eu-west-1' })).toEqual({
    brokers: 'a:1',
    sasl: { mechanism: 'aws-iam', region: 'eu-west-1' },
  })
})

test('an unknown mechanism is refused without a word about the password', () => {
  const env = { PAWL_KAFKA_USERNAME: 'anna', PAWL_KAFKA_PASSWORD: 'hunter2', PAWL_KAFKA_SASL_MECHANISM: 'kerberos' }
  expect(() => optionsOf({ bootstrap: 'a:1' }, env)).toThrow(/COMMAND_INVALID: .*PAWL_KAFKA_SASL_MECHANISM is kerberos/)
  expect(() => optionsOf({ bootstrap: 'a:1' }, env)).not.toThrow(/hunter2/)
})

test('a configuration file names certificates beside it, and the command line wins over its brokers', () => {
  using made = project({
    'ca.pem': 'authority',
    'kafka.json': JSON.stringify({
      brokers: 'c:3',
      patienceMs: 500,
      ssl: { ca: 'ca.pem', cert: '-----BEGIN CERTIFICATE-----', servername: 'kafka' },
    }),
  })
  const ssl = { ca: 'authority', cert: '-----BEGIN CERTIFICATE-----', servername: 'kafka' }
  const file = made.path('kafka.json')
  expect(optionsOf({ 'kafka-config': file })).toEqual({ brokers: 'c:3', patienceMs: 500, ssl })
  expect(optionsOf({ 'kafka-config': file, bootstrap: 'd:4' })).toMatchObject({ brokers: 'd:4', ssl })
})

test('a certificate that cannot be read, or a configuration without brokers, is named', () => {
  using made = project({ 'none.json': '{}', 'list.json': '[]' })
  expect(() => optionsOf({ bootstrap: 'a:1' }, { PAWL_KAFKA_CA: made.path('gone.pem') })).toThrow(
    /gone\.pem cannot be read/,
  )
  expect(() => optionsOf({ 'kafka-config': made.path('none.json') })).toThrow(/names no brokers: add --bootstrap/)
  expect(() => optionsOf({ 'kafka-config': made.path('list.json') })).toThrow(/is no JSON object/)
})
