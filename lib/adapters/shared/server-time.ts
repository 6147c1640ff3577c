/**
 * The clock of a server, by the `Date` of its answer to a request that needs no signature.
 */
import { PawlError } from '../../model/errors.ts'
import type { ServerTime } from '../../ports/surroundings.ts'

const timeoutMs = 5_000

/** Asks once; any answer will do, a refusal too. Throws `LEDGER_UNAVAILABLE` when there is none. */
export async function serverTime(server: string, url: string): Promise<ServerTime> {
  try {
    const before = Date.now()
    const { headers } = await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(timeoutMs) })
    const after = Date.now()
    const atMs = Date.parse(headers.get('date') ?? '')
    if (Number.isNaN(atMs)) throw new Error('the answer has no date')
    return { server, atMs, hereMs: (before + after) / 2 }
  } catch (error) {
    throw new PawlError('LEDGER_UNAVAILABLE', `${server} does not answer at ${url}`, { server }, error)
  }
}
