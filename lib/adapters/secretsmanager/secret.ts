/**
 * A secret of Secrets Manager for the connection of a sink: the whole text, or one field of its JSON.
 *
 * Asked whenever a connection opens, so that it may rotate. It says where it asks: a deployment grants it to the
 * functions that connect. Nothing of it is put into an error.
 */
import { PawlError } from '../../model/errors.ts'
import { type AwsOptions, clientConfig, loadClient, tryAgain } from '../shared/aws.ts'
import type { ManagedSecret } from '../shared/secret.ts'

/** Which part of the secret, and how it is reached. */
export interface ManagedSecretOptions extends AwsOptions {
  /** Name of a field of the secret's JSON; absent: the whole text. */
  readonly field?: string
}

/**
 * The secret of an ARN. When asked it throws `SECRET_INVALID` where there is no such text, `SINK_UNAVAILABLE` while
 * nobody answers, `AWS_ACCESS_DENIED`, `AWS_RESOURCE_MISSING`.
 */
export function managedSecret(secretArn: string, { field, ...aws }: ManagedSecretOptions = {}): ManagedSecret {
  const ask = async (): Promise<string> => {
    const sdk = await loadClient('@aws-sdk/client-secrets-manager', () => import('@aws-sdk/client-secrets-manager'))
    const client = new sdk.SecretsManagerClient(clientConfig(aws))
    const deed = { text: `read secret ${secretArn}`, writes: false, unavailable: 'SINK_UNAVAILABLE' } as const
    try {
      const { SecretString } = await tryAgain(deed, () =>
        client.send(new sdk.GetSecretValueCommand({ SecretId: secretArn })),
      )
      const text = field === undefined ? SecretString : fieldOf(SecretString ?? '', field)
      if (typeof text === 'string' && text !== '') return text
      throw new PawlError('SECRET_INVALID', secretArn, { secret: secretArn })
    } finally {
      client.destroy()
    }
  }
  return Object.freeze(Object.assign(ask, { resource: { of: 'secretsmanager', secretArn } as const }))
}

/** What a parser says of a secret may quote it: no cause. */
function fieldOf(text: string, field: string): unknown {
  try {
    return (JSON.parse(text) as Record<string, unknown> | null)?.[field]
  } catch {
    return undefined
  }
}
