/**
 * Secrets as a pipeline file names them: the text itself, or where to get it.
 *
 * A function is asked whenever a connection opens, so that a rotated secret takes effect without a deployment: it
 * may read the environment, a file, or a store of secrets. A secret is never printed, stored or put into an error.
 */
import { readFile } from 'node:fs/promises'

/** A secret, or where to get it. */
export type Secret = string | (() => string | Promise<string>)

/** The secret as text. */
export async function revealed(secret: Secret): Promise<string> {
  return typeof secret === 'string' ? secret : secret()
}

/** A secret that stands in a file, as Docker and Kubernetes mount them; the newline at its end is left out. */
export function secretFile(path: string): Secret {
  return async () => (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
}
