/**
 * A TCP proxy that cuts a connection at a chosen statement, whatever the protocol.
 *
 * Databases and Redis send statements as text, so the chunk that holds one is known by its words: it is cut off
 * before it is passed on, or once the server has answered it. That is how the answer to COMMIT gets lost on a real
 * socket.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'

export interface CuttingProxy {
  readonly port: number
  /** At the next chunk with these words, or once so many such chunks have passed. */
  cut(words: RegExp, when: 'before' | 'after', skip?: number): void
  /** Forgets a cut that was planned. */
  heal(): void
  /** While true, swallows everything, as a network that is gone without a word. */
  silent: boolean
  /** How many cuts have been made. */
  readonly cuts: number
  close(): Promise<void>
}

/** Cuts what goes over the wire, whatever it says, as `disturb` of the sink contract wants. */
export function cuttingBy(proxy: () => CuttingProxy) {
  return async (nth: number, when: 'before' | 'after') => {
    const through = proxy()
    const before = through.cuts
    through.cut(/^/, when, nth)
    return async () => {
      through.heal()
      return through.cuts > before
    }
  }
}

/** Listens on a free port and passes on to `port`. */
export async function cuttingProxy(port: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  let planned: { readonly words: RegExp; readonly when: 'before' | 'after'; skip: number } | null = null
  let cuts = 0
  let silent = false
  const server: Server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    let cutting = false
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', end).on('close', () => {
        sockets.delete(socket)
        end()
      })
    }
    client.on('data', (chunk) => {
      if (silent) return
      if (planned === null || !planned.words.test(chunk.toString('latin1')) || planned.skip-- > 0) {
        upstream.write(chunk)
        return
      }
      const { when } = planned
      planned = null
      cuts++
      cutting = when === 'after'
      if (cutting) upstream.write(chunk)
      else end()
    })
    upstream.on('data', (chunk) => {
      if (cutting) end()
      else if (!silent) client.write(chunk)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  return {
    port: (server.address() as { port: number }).port,
    cut: (words, when, skip = 0) => {
      planned = { words, when, skip }
    },
    heal: () => {
      planned = null
    },
    get silent() {
      return silent
    },
    set silent(value) {
      silent = value
    },
    get cuts() {
      return cuts
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
