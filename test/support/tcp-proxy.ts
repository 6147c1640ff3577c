/**
 * A TCP proxy before a Kafka broker that cuts connections at chosen requests.
 *
 * The broker must advertise the proxy's port. Requests are cut apart by their length prefix and known by their
 * API key, so that "the answer to EndTxn was lost" happens on a real socket: the request reaches the broker, the
 * broker answers, and the client sees the connection die instead.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'

export interface TcpProxy {
  readonly port: number
  /** At the next request of this kind, or once so many such have passed: cut before it is passed on, or once it is answered. */
  cut(apiKey: number | 'any', when: 'before' | 'after', skip?: number): void
  /** Forgets a cut that was planned. */
  heal(): void
  /** How many cuts have been made. */
  readonly cuts: number
  close(): Promise<void>
}

/** Listens on a free port and passes on to `port`, which may be set later. */
export async function tcpProxy(target: { port: number }): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let planned: { readonly apiKey: number | 'any'; readonly when: 'before' | 'after'; skip: number } | null = null
  let cuts = 0
  const server: Server = createServer((client) => {
    const broker = connect(target.port, '127.0.0.1')
    for (const socket of [client, broker]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        broker.destroy()
      })
    }
    let cutting = false
    const end = () => {
      cuts++
      client.destroy()
      broker.destroy()
    }
    const frames = framed((apiKey) => {
      if (planned === null || (planned.apiKey !== 'any' && planned.apiKey !== apiKey)) return true
      if (planned.skip-- > 0) return true
      const { when } = planned
      planned = null
      if (when === 'after') cutting = true
      else end()
      return when === 'after'
    })
    client.on('data', (chunk) => {
      for (const part of frames(chunk)) broker.write(part)
    })
    broker.on('data', (chunk) => {
      if (cutting) end()
      else client.write(chunk)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  return {
    port: (server.address() as { port: number }).port,
    cut: (apiKey, when, skip = 0) => {
      planned = { apiKey, when, skip }
    },
    heal: () => {
      planned = null
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

/** Cuts a stream into what may be passed on; asks at the start of each request. */
function framed(pass: (apiKey: number) => boolean): (chunk: Buffer) => Buffer[] {
  let held: Buffer = Buffer.alloc(0)
  let left = 0
  return (chunk) => {
    const out: Buffer[] = []
    let rest = held.length > 0 ? Buffer.concat([held, chunk]) : chunk
    held = Buffer.alloc(0)
    while (rest.length > 0) {
      if (left === 0) {
        if (rest.length < 6) {
          held = rest
          break
        }
        left = 4 + rest.readInt32BE(0)
        if (!pass(rest.readInt16BE(4))) return out
      }
      const part = rest.subarray(0, left)
      out.push(part)
      left -= part.length
      rest = rest.subarray(part.length)
    }
    return out
  }
}
