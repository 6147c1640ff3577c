/**
 * User and password of a cluster, from a secret of Secrets Manager.
 *
 * The secret is read again for every socket that opens, so that it may rotate without a deployment. Its form is that
 * of Amazon MSK: a JSON object with `username` and `password`. Nothing of it is put into an error.
 */
import { PawlError } from '../../model/errors.ts'
import { type AwsOptions, clientConfig, loadClient, tryAgain } from '../shared/aws.ts'

/** What a broker wants to know. */
export interface Credentials {
  readonly username: string
  readonly password: string
}

/** Asks for the secret each time it is called. Throws `SECRET_INVALID`, `BROKER_UNREACHABLE`, `AWS_ACCESS_DENIED`. */
export function secretCredentials(secretArn: string, options: AwsOptions = {}): () => Promise<Credentials> {
  return async () => {
    const sdk = await loadClient('@aws-sdk/client-secrets-manager', () => import('@aws-sdk/client-secrets-manager'))
    const client = new sdk.SecretsManagerClient(clientConfig(options))
    const deed = { text: `read secret ${secretArn}`, writes: false, unavailable: 'BROKER_UNREACHABLE' } as const
    try {
      const { SecretString } = await tryAgain(deed, () =>
        client.send(new sdk.GetSecretValueCommand({ SecretId: secretArn })),
      )
      return credentialsOf(SecretString, secretArn)
    } finally {
      client.destroy()
    }
  }
}

/** What a parser says of a secret may quote it: no cause. */
function credentialsOf(text: string | undefined, secretArn: string): Credentials {
  const { username, password } = parsed(text ?? '')
  if (typeof username === 'string' && typeof password === 'string') return { username, password }
  throw new PawlError('SECRET_INVALID', secretArn, { secret: secretArn })
}

function parsed(text: string): { readonly username?: unknown; readonly password?: unknown } {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}
