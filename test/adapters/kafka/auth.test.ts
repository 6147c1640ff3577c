import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { iamTokens, securityOf, type TokenSigner } from '../../../lib/adapters/kafka/auth.ts'
import { kafka } from '../../../lib/adapters/kafka/cluster.ts'
import { PawlError } from '../../../lib/model/errors.ts'

const lifeMs = 900_000

/** Signs `token 1`, `token 2`, …, each good for 15 minutes from `now.ms`. */
function fakeSigner(now: { readonly ms: number }) {
  const asked: unknown[] = []
  const sign = async (options: unknown) => {
    asked.push(options)
    return { token: `token ${asked.length}`, expiryTime: now.ms + lifeMs }
  }
  const signer: TokenSigner = { generateAuthToken: sign, generateAuthTokenFromRole: sign }
  return { asked, load: async () => signer }
}

test('uses an IAM token until a minute before its end, then signs another', async () => {
  const now = { ms: 1_000_000 }
  const { asked, load } = fakeSigner(now)
  const token = iamTokens({ region: 'eu-central-1' }, load, () => now.ms)
  expect(await token()).toBe('token 1')
  now.ms += lifeMs - 60_001
  expect(await token()).toBe('token 1')
  now.ms += 1
  expect(await token()).toBe('token 2')
  expect(asked).toEqual([{ region: 'eu-central-1' }, { region: 'eu-central-1' }])
})

test('signs once for many connections that open together, also after the end of a token', async () => {
  const now = { ms: 0 }
  const { load } = fakeSigner(now)
  const token = iamTokens({ region: 'r' }, load, () => now.ms)
  expect(await Promise.all([token(), token(), token()])).toEqual(['token 1', 'token 1', 'token 1'])
  now.ms += lifeMs
  expect(await Promise.all([token(), token(), token()])).toEqual(['token 2', 'token 2', 'token 2'])
})

test('tries again after a signature that failed', async () => {
  const now = { ms: 0 }
  const { load } = fakeSigner(now)
  let failures = 1
  const token = iamTokens(
    { region: 'r' },
    () => (failures-- > 0 ? Promise.reject(new Error('no credentials')) : load()),
    () => now.ms,
  )
  await expect(token()).rejects.toThrow('no credentials')
  expect(await token()).toBe('token 1')
})

test('signs with a role where one is named', async () => {
  const { asked, load } = fakeSigner({ ms: 0 })
  await iamTokens({ region: 'r', roleArn: 'arn:aws:iam::1:role/x' }, load, () => 0)()
  expect(asked).toEqual([{ region: 'r', awsRoleArn: 'arn:aws:iam::1:role/x' }])
})

test('the signer of AWS is what is loaded, and makes a token from credentials of the process', async () => {
  const kept = { ...process.env }
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'example' })
  try {
    const url = Buffer.from(await iamTokens({ region: 'eu-central-1' })(), 'base64url').toString()
    expect(url).toMatch(/^https:\/\/kafka\.eu-central-1\.amazonaws\.com\/\?.*Action=kafka-cluster%3AConnect/)
  } finally {
    process.env = kept
  }
})

test('IAM implies TLS and is OAUTHBEARER to the broker', async () => {
  const { ssl, sasl } = await securityOf({ sasl: { mechanism: 'aws-iam', region: 'r' } })()
  expect(ssl).toEqual({})
  expect(sasl?.mechanism).toBe('oauthbearer')
})

test('asks for a password when a connection opens, each time', async () => {
  let asked = 0
  const password = () => `password ${++asked}`
  const security = securityOf({ sasl: { mechanism: 'plain', username: 'u', password } })
  expect(asked).toBe(0)
  expect([await security(), await security()].map(({ sasl }) => sasl)).toEqual([
    { mechanism: 'plain', username: 'u', password: 'password 1' },
    { mechanism: 'plain', username: 'u', password: 'password 2' },
  ])
  expect(await securityOf({ ssl: true })()).toEqual({ ssl: {}, sasl: null })
  expect(await securityOf({})()).toEqual({ ssl: null, sasl: null })
})

test('a cluster prints its brokers and no secret', () => {
  const secret = 'open-sesame'
  const spec = kafka({
    brokers: 'a:9092, b:9093',
    ssl: { key: secret },
    sasl: { mechanism: 'plain', username: 'alice', password: secret },
  })
  expect(spec.brokers).toEqual(['a:9092', 'b:9093'])
  expect(`${inspect(spec, { depth: 9, showHidden: true })} ${JSON.stringify(spec)} ${spec}`).not.toContain(secret)
  expect(JSON.stringify(spec)).toBe('{"kind":"kafka","brokers":["a:9092","b:9093"]}')
})

test.each(['', 'host', 'host:', 'host:0', 'host:65536', 'a:1,,b:2', 'http://host:9092'])(
  'refuses %j as addresses of brokers',
  (brokers) => {
    expect(() => kafka({ brokers })).toThrow(PawlError)
    expect(() => kafka({ brokers })).toThrow(/PIPELINE_INVALID.*not host:port/)
  },
)
