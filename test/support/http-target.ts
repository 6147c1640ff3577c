/**
 * An HTTP endpoint that takes rows and misbehaves on demand: slow, refusing, answering nothing after it has written.
 *
 * What it wrote outlives its server, as a database outlives a connection: `kill` cuts all sockets and closes the
 * port, `start` opens the same port again.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What happens to one request. */
export type Misdeed =
  | { readonly does: 'refuses'; readonly status: number }
  /** Writes, then cuts the connection in place of an answer. */
  | { readonly does: 'loses the answer' }
  /** Cuts the connection before anything is written. */
  | { readonly does: 'loses the request' }
  /** Answers late, and writes before that or not at all when the caller has gone. */
  | { readonly does: 'dawdles'; readonly ms: number }
  | { readonly does: 'dies'; readonly after: 'writing' | 'reading' }

/** A batch as it was written. */
export interface WrittenBatch {
  readonly key: string
  readonly epoch: number
  readonly lane: number
  readonly rows: readonly string[]
}

/** A target that functions write to. */
export interface HttpTarget {
  readonly url: string
  readonly written: readonly WrittenBatch[]
  /** Takes one misdeed a request, from the front. */
  readonly misdeeds: (Misdeed | null)[]
  /** Opens the port again, unless it is open. */
  start(): Promise<void>
  kill(): Promise<void>
}

/** An endpoint that runs. */
export async function httpTarget(): Promise<HttpTarget> {
  const written: WrittenBatch[] = []
  const misdeeds: (Misdeed | null)[] = []
  let server: Server | null = null
  let port = 0
  const target: HttpTarget = {
    get url() {
      return `http://127.0.0.1:${port}/rows`
    },
    written,
    misdeeds,
    async start() {
      if (server !== null) return
      server = createServer((request, response) => void answer(target, written, request, response))
      await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve))
      port = (server.address() as AddressInfo).port
    },
    async kill() {
      const dying = server
      server = null
      if (dying === null) return
      const closed = new Promise((resolve) => dying.close(resolve))
      dying.closeAllConnections()
      await closed
    },
  }
  await target.start()
  return target
}

async function answer(
  target: HttpTarget,
  written: WrittenBatch[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let body = ''
  for await (const piece of request) body += piece
  const misdeed = target.misdeeds.shift() ?? undefined
  const write = () => written.push(JSON.parse(body) as WrittenBatch)
  switch (misdeed?.does) {
    case undefined:
      write()
      break
    case 'refuses':
      response.writeHead(misdeed.status).end()
      return
    case 'loses the answer':
      write()
      request.socket.destroy()
      return
    case 'loses the request':
      request.socket.destroy()
      return
    case 'dawdles':
      await new Promise((resolve) => setTimeout(resolve, misdeed.ms))
      if (request.socket.destroyed) return
      write()
      break
    case 'dies':
      if (misdeed.after === 'writing') write()
      await target.kill()
      return
  }
  response.writeHead(204).end()
}
