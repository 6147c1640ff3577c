/**
 * Requests to a Doris frontend, which sends whoever brings rows on to a backend.
 *
 * A redirect (307, also from one frontend to the master) is followed with our credentials, as `curl
 * --location-trusted` does, before a byte of the body is sent: `Expect: 100-continue` waits for whoever takes it.
 * Whether a request whose answer got lost has had an effect is not known here; whoever sent it reads back.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { DatabaseAddress } from '../shared/database-address.ts'

/** What a server said: JSON, with its text, since numbers may exceed 2^53. */
export interface DorisAnswer {
  readonly text: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** A request; rows are streamed, and may be asked for again. */
export interface DorisCall {
  readonly method: 'GET' | 'PUT'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: () => AsyncIterable<Buffer>
}

/** Where and how long. */
export interface DorisHttpOptions {
  readonly sink: string
  readonly timeoutMs: number
  address(): Promise<DatabaseAddress>
}

/** Sends requests. Throws `SINK_UNAVAILABLE`, `AUTHENTICATION_FAILED`, `SINK_SCHEMA_INVALID`, and what the body throws. */
export type DorisHttp = (call: DorisCall) => Promise<DorisAnswer>

const redirectsMax = 5
const answerCharsMax = 1024 * 1024

/** Requests to the frontend at an address, which is asked for anew each time. */
export function dorisHttp({ sink, timeoutMs, address }: DorisHttpOptions): DorisHttp {
  return async (call) => {
    const at = await address()
    const { host, port, user = '', password = '', tls } = at
    const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    const signal = AbortSignal.timeout(timeoutMs)
    let url = new URL(
      `${tls === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}${call.path}`,
    )
    try {
      for (let hop = 0; hop <= redirectsMax; hop++) {
        const answer = await send(url, call, { authorization, signal, tls: tls ?? {} })
        if ('location' in answer) url = redirected(answer.location, url)
        else return checked(answer.status, answer.text, sink)
      }
      throw new Error(`${redirectsMax} redirects lead nowhere`)
    } catch (error) {
      if (isPawlError(error)) throw error
      const reason = signal.aborted
        ? `no answer in ${timeoutMs} ms`
        : error instanceof Error
          ? error.message
          : String(error)
      throw new PawlError('SINK_UNAVAILABLE', `Doris of sink ${sink}: ${reason}`, { sink, reason }, error)
    }
  }
}

/** Doris puts the credentials of the request into the address that it redirects to; ours go into a header. */
function redirected(location: string, from: URL): URL {
  const url = new URL(location, from)
  url.username = ''
  url.password = ''
  return url
}

interface Connection {
  readonly authorization: string
  readonly signal: AbortSignal
  readonly tls: object
}

type Sent = { readonly location: string } | { readonly status: number; readonly text: string }

function send(
  url: URL,
  { method, headers, body }: DorisCall,
  { authorization, signal, tls }: Connection,
): Promise<Sent> {
  const secure = url.protocol === 'https:'
  const framing =
    body === undefined ? { 'content-length': '0' } : { expect: '100-continue', 'transfer-encoding': 'chunked' }
  return new Promise<Sent>((resolve, reject) => {
    const options = { method, headers: { ...headers, ...framing, authorization }, signal, agent: false as const }
    const request = secure ? httpsRequest(url, { ...options, ...tls }) : httpRequest(url, options)
    request.on('error', reject)
    request.on('response', (response) => {
      read(response).then((answer) => {
        resolve(answer)
        request.destroy()
      }, reject)
    })
    if (body === undefined) request.end()
    // What the body throws (a staged object is missing) is the error of the call.
    else request.on('continue', () => void pipeline(Readable.from(body()), request).catch(reject))
    if (body !== undefined) request.flushHeaders()
  })
}

async function read(response: IncomingMessage): Promise<Sent> {
  const { statusCode = 0, headers } = response
  if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined) return { location: headers.location }
  let text = ''
  for await (const piece of response.setEncoding('utf8')) {
    text += piece
    if (text.length > answerCharsMax) throw new Error('the answer is too long')
  }
  return { status: statusCode, text }
}

function checked(status: number, text: string, sink: string): DorisAnswer {
  const refuse = (code: 'AUTHENTICATION_FAILED' | 'SINK_SCHEMA_INVALID' | 'SINK_UNAVAILABLE') => {
    const reason = `status ${status}: ${text.slice(0, 300)}`
    return new PawlError(code, `Doris of sink ${sink}: ${reason}`, { sink, reason })
  }
  if (status === 401 || status === 403) throw refuse('AUTHENTICATION_FAILED')
  if (status === 404) throw refuse('SINK_SCHEMA_INVALID')
  const fields = parsed(text)
  if (status !== 200 || fields === null) throw refuse('SINK_UNAVAILABLE')
  return { text, fields }
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}
