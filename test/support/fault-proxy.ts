/**
 * An HTTP proxy before an emulator of AWS that makes chosen requests go wrong.
 *
 * Faults happen on real sockets, below the SDK: a request that never arrives, an answer that is lost after the deed
 * was done, a deed that is done twice or only later, an answer of an overloaded service, bytes that were changed on
 * the way. Rules are used up in the order in which they were given; every request is noted.
 */
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What goes wrong with a request. */
export type ProxyFault =
  /** The connection ends; the request was not passed on, or it was and its answer is lost. */
  | { readonly fault: 'request-lost' | 'answer-lost' }
  /** The answer is lost at once, the request arrives later. */
  | { readonly fault: 'late'; readonly afterMs: number }
  /** Arrives twice; the first or the second answer comes back. */
  | { readonly fault: 'repeated'; readonly answer: 'first' | 'second' }
  | { readonly fault: 'delayed'; readonly afterMs: number }
  /** Not passed on, or passed on all the same, and answered with an error. */
  | {
      readonly fault: 'answered'
      readonly status: number
      readonly code: string
      readonly passedOn?: boolean
      /** Fields beside the code of an error in JSON. */
      readonly more?: Readonly<Record<string, unknown>>
      /** Instead of an error in XML. */
      readonly xml?: string
    }
  /** One bit in the middle of the answer's body is changed. */
  | { readonly fault: 'damaged' }

/** A request as rules see it. */
export interface ProxiedCall {
  readonly method: string
  /** Path with the query. */
  readonly path: string
  /** `DynamoDB_20120810.PutItem` → `PutItem`; empty for S3. */
  readonly operation: string
  /** `app/NAME` of the user agent, by which a client of the SDK can say who it is; empty when it does not. */
  readonly caller: string
}

export interface FaultProxy {
  /** `http://127.0.0.1:PORT`, to be used as endpoint. */
  readonly endpoint: string
  /** All requests since the start or the last `forget`. */
  readonly calls: readonly ProxiedCall[]
  /** The next `times` matching requests (1) suffer the fault. */
  plan(matches: (call: ProxiedCall) => boolean, fault: ProxyFault, times?: number): void
  /** As `plan`, before all other rules. */
  planFirst(matches: (call: ProxiedCall) => boolean, fault: ProxyFault, times?: number): void
  /** Faults that were planned and have not happened. */
  readonly left: number
  /** Drops rules and notes. */
  forget(): void
  close(): Promise<void>
}

interface Rule {
  readonly matches: (call: ProxiedCall) => boolean
  readonly fault: ProxyFault
  times: number
}

interface Answer {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: Buffer
}

interface Passing {
  readonly incoming: IncomingMessage
  readonly body: Buffer
  readonly outgoing: ServerResponse
  readonly forward: () => Promise<Answer>
}

/** Listens on a free port and passes on to `endpoint`. `observe` sees every request with its body. */
export async function faultProxy(
  endpoint: string,
  observe: (call: ProxiedCall, body: Buffer) => void = () => {},
): Promise<FaultProxy> {
  const calls: ProxiedCall[] = []
  const rules: Rule[] = []
  const sockets = new Set<Socket>()
  const server = createServer((incoming, outgoing) => {
    collect(incoming)
      .then((body) => {
        const call = callOf(incoming)
        calls.push(call)
        observe(call, body)
        const rule = rules.find(({ times, matches }) => times > 0 && matches(call))
        if (rule !== undefined) rule.times--
        const forward = () => send(endpoint, incoming, body)
        return suffer(rule?.fault ?? null, { incoming, body, outgoing, forward })
      })
      .catch(() => incoming.socket.destroy())
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    endpoint: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    calls,
    plan: (matches, fault, times = 1) => void rules.push({ matches, fault, times }),
    planFirst: (matches, fault, times = 1) => void rules.unshift({ matches, fault, times }),
    get left() {
      return rules.reduce((sum, { times }) => sum + times, 0)
    },
    forget() {
      rules.length = 0
      calls.length = 0
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A place of a contract whose clients reach the emulator through a proxy, which can `disturb` them. */
export async function throughProxy<C extends { readonly endpoint: string }, P extends { dispose(): Promise<void> }>(
  client: C,
  fresh: (client: C, controls: { readonly disturb: ReturnType<typeof disturbBy> }) => Promise<P>,
): Promise<P> {
  const proxy = await faultProxy(client.endpoint)
  const place = await fresh({ ...client, endpoint: proxy.endpoint }, { disturb: disturbBy(proxy) })
  return { ...place, dispose: () => place.dispose().finally(proxy.close) }
}

/** Cuts one request, or the answer to it, as `disturb` of the sink contract wants. */
export function disturbBy(proxy: FaultProxy) {
  return async (nth: number, when: 'before' | 'after') => {
    let seen = 0
    proxy.plan(() => seen++ === nth, { fault: when === 'before' ? 'request-lost' : 'answer-lost' })
    return async () => {
      const struck = proxy.left === 0
      proxy.forget()
      return struck
    }
  }
}

function callOf({ method = '', url = '', headers }: IncomingMessage): ProxiedCall {
  const target = headers['x-amz-target']
  const operation = typeof target === 'string' ? (target.split('.').at(-1) ?? '') : ''
  const agent = `${headers['user-agent'] ?? ''} ${headers['x-amz-user-agent'] ?? ''}`
  return { method, path: url, operation, caller: /(?:^| )app\/(\S+)/.exec(agent)?.[1] ?? '' }
}

async function suffer(fault: ProxyFault | null, { incoming, outgoing, forward }: Passing): Promise<void> {
  const lose = () => void incoming.socket.destroy()
  switch (fault?.fault) {
    case undefined:
      return answer(outgoing, await forward())
    case 'request-lost':
      return lose()
    case 'answer-lost':
      await forward()
      return lose()
    case 'late':
      lose()
      await pause(fault.afterMs)
      return void (await forward())
    case 'repeated': {
      const answers = [await forward(), await forward()] as const
      return answer(outgoing, answers[fault.answer === 'first' ? 0 : 1])
    }
    case 'delayed':
      await pause(fault.afterMs)
      return answer(outgoing, await forward())
    case 'damaged':
      return answer(outgoing, damaged(await forward()))
    case 'answered':
      if (fault.passedOn) await forward()
      return answer(outgoing, errorAnswer(incoming, fault))
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

function answer(outgoing: ServerResponse, { status, headers, body }: Answer): void {
  outgoing.writeHead(status, headers)
  outgoing.end(body)
}

/** An error as S3 writes it in XML and the others in JSON. */
function errorAnswer({ headers }: IncomingMessage, fault: Extract<ProxyFault, { fault: 'answered' }>): Answer {
  const { status, code, more, xml } = fault
  if (headers['x-amz-target'] === undefined) {
    const text = xml ?? `<?xml version="1.0"?><Error><Code>${code}</Code><Message>as planned</Message></Error>`
    return { status, headers: { 'content-type': 'application/xml' }, body: Buffer.from(text) }
  }
  const text = JSON.stringify({
    __type: `com.amazonaws#${code}`,
    message: 'as planned',
    Message: 'as planned',
    ...more,
  })
  return { status, headers: { 'content-type': 'application/x-amz-json-1.0' }, body: Buffer.from(text) }
}

function damaged({ status, headers, body }: Answer): Answer {
  const changed = Buffer.from(body)
  changed[changed.length >> 1]! ^= 1
  return { status, headers, body: changed }
}

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function send(endpoint: string, { method, url, headers }: IncomingMessage, body: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { host: _, connection: __, ...rest } = headers
    const outgoing = request(new URL(url ?? '/', endpoint), { method, headers: rest }, (incoming) => {
      collect(incoming).then((received) => {
        const { 'transfer-encoding': ___, ...kept } = incoming.headers
        resolve({ status: incoming.statusCode ?? 502, headers: kept, body: received })
      }, reject)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
