import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { bundleFunctions } from '../../infra/bundle.ts'
import type { FunctionName } from '../../infra/function-names.ts'
import { causeOf } from '../../lib/epoch/cause.ts'
import { entry } from '../infra/deployment.ts'

const bundles = bundleFunctions(entry)

/** A few operations of DynamoDB and Step Functions, on sockets that can die without a sign. */
let server: Server
let calls: string[]
let answers: Record<string, { readonly status?: number; readonly body: unknown }>
const dead = new WeakSet<Socket>()
const sockets = new Set<Socket>()

function serve(request: IncomingMessage, response: ServerResponse): void {
  if (dead.has(request.socket)) return
  const operation = String(request.headers['x-amz-target']).split('.').at(-1) ?? ''
  calls.push(operation)
  const { status = 200, body } = answers[operation] ?? { body: {} }
  request
    .resume()
    .on('end', () =>
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body)),
    )
}

beforeAll(async () => {
  server = createServer(serve).on('connection', (socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const environment = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    PAWL_BUCKET: 'bucket',
    PAWL_TABLE: 'table',
    PAWL_STAGE: 'test',
    PAWL_KAFKA: JSON.stringify({ brokers: '127.0.0.1:1', authentication: { type: 'none' } }),
    PAWL_STATE_MACHINE: 'arn:aws:states:us-east-1:000000000000:stateMachine:pawl-test-word-count',
  }
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value)
})

afterAll(() => {
  vi.unstubAllEnvs()
  server.closeAllConnections()
  server.close()
})

beforeEach(() => {
  calls = []
  answers = {
    UpdateItem: { body: { Attributes: { wakes: { N: '1' } } } },
    StartExecution: { body: { executionArn: 'arn', startDate: 0 } },
  }
})

type Run = (input: unknown) => Promise<unknown>

async function load(name: FunctionName): Promise<Run> {
  return ((await import(join(bundles[name].directory, `${name}.mjs`))) as { run: Run }).run
}

describe('a bundled function', () => {
  test('rings: counts, looks for a run, starts one', async () => {
    const run = await load('trigger')
    expect(await run({})).toEqual({ rung: true, run: 'started' })
    expect(calls).toEqual(['UpdateItem', 'GetItem', 'StartExecution'])
  })

  test('keeps its sockets from one invocation to the next', async () => {
    const run = await load('trigger')
    await run({})
    const before = sockets.size
    await run({})
    expect(sockets.size).toBe(before)
  })

  test('opens new sockets after a long rest, and does not wait for those that died in it', async () => {
    const run = await load('trigger')
    await run({})
    for (const socket of sockets) dead.add(socket)
    const startedAt = performance.now()
    const nowMs = Date.now()
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => nowMs + 60_000)
    expect(await run({})).toEqual({ rung: true, run: 'started' })
    clock.mockRestore()
    expect(performance.now() - startedAt).toBeLessThan(3000)
  })

  test('fails by the name of the kind, with code and details in the text', async () => {
    const run = await load('commit')
    const refused = { __type: 'com.amazon.coral.service#AccessDeniedException', message: 'not you' }
    answers.GetItem = { status: 400, body: refused }
    const input = {
      run: { pipeline: 'word-count', id: 'r' },
      key: {},
      manifest: { name: 'pipelines/a', bytes: 1, sha256: 'x' },
    }
    const thrown = (await run(input).catch((error: unknown) => error)) as Error
    const caught = {
      Error: thrown.name,
      Cause: JSON.stringify({ errorType: thrown.name, errorMessage: thrown.message }),
    }
    expect([thrown.name, causeOf(caught).code]).toEqual(['Invalid', 'AWS_ACCESS_DENIED'])
  })
})
