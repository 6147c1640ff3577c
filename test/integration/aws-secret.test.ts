import { CreateSecretCommand, PutSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { expect } from 'vitest'
import { managedSecret } from '../../lib/adapters/secretsmanager/secret.ts'
import { secretsIn } from '../../lib/adapters/shared/secret.ts'
import { awsTest } from '../support/aws.ts'

awsTest('a secret is read each time it is asked for, whole or by field, and never quoted', async ({ emulator }) => {
  const client = new SecretsManagerClient(emulator.client)
  const { ARN = '' } = await client.send(
    new CreateSecretCommand({ Name: `database-${Date.now()}`, SecretString: '{"url":"postgres://first"}' }),
  )
  const whole = managedSecret(ARN, emulator.client)
  const url = managedSecret(ARN, { field: 'url', ...emulator.client })
  expect([await whole(), await url()]).toEqual(['{"url":"postgres://first"}', 'postgres://first'])
  await client.send(new PutSecretValueCommand({ SecretId: ARN, SecretString: '{"url":"postgres://second"}' }))
  expect(await url()).toBe('postgres://second')
  const refused = await managedSecret(ARN, { field: 'password', ...emulator.client })().catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'SECRET_INVALID' })
  expect(String(refused)).not.toContain('second')
  await expect(managedSecret(`${ARN}-gone`, emulator.client)()).rejects.toMatchObject({ code: 'AWS_RESOURCE_MISSING' })
  client.destroy()
})

awsTest('a connection says which secrets a deployment must grant', async () => {
  const secret = managedSecret('arn:secret')
  expect(secretsIn(secret)).toEqual([{ of: 'secretsmanager', secretArn: 'arn:secret' }])
  expect(secretsIn({ password: secret })).toEqual([{ of: 'secretsmanager', secretArn: 'arn:secret' }])
  expect([secretsIn('postgres://a'), secretsIn(() => 'b'), secretsIn({ password: 'c' })]).toEqual([[], [], []])
})
