/**
 * Secrets as a pipeline file names them: the text itself, or where to get it.
 *
 * A function is asked whenever a connection opens, so that a rotated secret takes effect without a deployment: it
 * may read the environment, a file, or a store of secrets. A secret is never printed, stored or put into an error.
 */
import { readFile } from 'node:fs/promises'
import type { SecretResource } from '../../model/resources.ts'

/** A secret, or where to get it. */
export type Secret = string | (() => string | Promise<string>) | ManagedSecret

/** A function that says where it asks, so that a deployment may grant it. */
export interface ManagedSecret {
  (): Promise<string>
  readonly resource: SecretResource
}

/** The secret as text. */
export async function revealed(secret: Secret): Promise<string> {
  return typeof secret === 'string' ? secret : secret()
}

/** A secret that stands in a file, as Docker and Kubernetes mount them; the newline at its end is left out. */
export function secretFile(path: string): Secret {
  return async () => (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
}

/** What a connection asks Secrets Manager for: itself, or its password. */
export function secretsIn(connection: Secret | { readonly password?: Secret }): readonly SecretResource[] {
  const secret = typeof connection === 'object' ? connection.password : connection
  return typeof secret === 'function' && 'resource' in secret ? [(secret as ManagedSecret).resource] : []
}
