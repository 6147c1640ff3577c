/**
 * What the S3 store makes of lost answers, conflicts, throttles and damaged bytes, on real sockets.
 */
import { randomBytes } from 'node:crypto'
import { ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3'
import { describe, expect } from 'vitest'
import { s3Store } from '../../lib/adapters/s3/store.ts'
import { sealBytes } from '../../lib/epoch/seal.ts'
import type { Store } from '../../lib/ports/store.ts'
import { awsTest, type Emulator } from '../support/aws.ts'
import { freshBucket } from '../support/aws-places.ts'
import { type FaultProxy, faultProxy, type ProxiedCall, type ProxyFault } from '../support/fault-proxy.ts'

const test = awsTest.extend<{ world: { proxy: FaultProxy; store: Store; bucket: string; emulator: Emulator } }>({
  world: async ({ emulator }, use) => {
    const proxy = await faultProxy(emulator.endpoint)
    const bucket = await freshBucket(emulator)
    const partBytes = 5 * 1024 * 1024
    const store = s3Store({ ...emulator.client, endpoint: proxy.endpoint, bucket, forcePathStyle: true, partBytes })
    await use({ proxy, store, bucket, emulator })
    await store.close()
    await proxy.close()
  },
})

const put = ({ method }: ProxiedCall) => method === 'PUT'
const get = ({ method }: ProxiedCall) => method === 'GET'
const complete = ({ method, path }: ProxiedCall) => method === 'POST' && path.includes('uploadId=')
const bytes = (text: string) => [Buffer.from(text)]
const code = (name: string) => expect.objectContaining({ code: name })
const answered = (status: number, name: string, passedOn = false): ProxyFault => ({
  fault: 'answered',
  status,
  code: name,
  passedOn,
})

describe('creating', () => {
  test('case 1: reads its own object back when the answer to its creation was lost', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(put, { fault: 'answer-lost' })
    await expect(store.create('a', bytes('mine'))).rejects.toEqual(code('UNKNOWN_RESULT'))
    expect(await store.create('a', bytes('mine'))).toBe('exists')
    proxy.plan(put, { fault: 'answer-lost' })
    await expect(sealBytes(store, 'b', bytes('mine'))).resolves.toMatchObject({ name: 'b', bytes: 4 })
    expect((await store.read('b'))?.toString()).toBe('mine')
  })

  test('case 2: an unknown result deletes nothing, and what arrives late is there', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(put, { fault: 'late', afterMs: 300 })
    proxy.plan(put, { fault: 'request-lost' }, 7)
    await expect(store.create('a', bytes('late'))).rejects.toEqual(code('UNKNOWN_RESULT'))
    await expect.poll(async () => (await store.read('a'))?.toString()).toBe('late')
    expect(proxy.calls.filter(({ method }) => method === 'DELETE')).toEqual([])
  })

  test('case 4: never takes its own earlier try for the object of another', async ({ world }) => {
    const { proxy, store } = world
    for (const fault of [
      answered(500, 'InternalError', true),
      answered(503, 'SlowDown', true),
      { fault: 'repeated', answer: 'second' },
    ] as const) {
      const name = `${fault.fault}/${'code' in fault ? fault.code : ''}x`
      proxy.plan(put, fault)
      const ref = await sealBytes(store, name, bytes('mine'))
      expect((await store.read(name))?.length).toBe(ref.bytes)
    }
    expect(proxy.left).toBe(0)
  })

  test('creates an object of which the first requests never arrived', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(put, { fault: 'request-lost' })
    proxy.plan(put, answered(503, 'SlowDown'))
    expect(await store.create('a', bytes('mine'))).toBe('created')
    expect(proxy.calls).toHaveLength(3)
  })

  test('case 8: a conflict of conditions is tried again, a failed condition is lost', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(put, answered(409, 'ConditionalRequestConflict'), 2)
    expect(await store.create('a', bytes('mine'))).toBe('created')
    expect(proxy.calls).toHaveLength(3)
    proxy.plan(put, answered(409, 'ConditionalRequestConflict'))
    expect(await store.create('a', bytes('other'))).toBe('exists')
    proxy.plan(put, answered(409, 'OperationAborted'))
    await expect(store.create('b', bytes('mine'))).rejects.toEqual(code('ASSERTION_FAILED'))
    proxy.plan(put, answered(409, 'ConditionalRequestConflict'), 100)
    await expect(store.create('b', bytes('mine'))).rejects.toEqual(code('STORE_UNAVAILABLE'))
    expect(await store.read('b')).toBeNull()
  })

  test('case 8: one of many writers wins when some of them meet conflicts', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(put, answered(409, 'ConditionalRequestConflict'), 6)
    const answers = await Promise.all(Array.from({ length: 8 }, (_, writer) => store.create('a', bytes(`${writer}`))))
    expect(answers.toSorted()).toEqual(['created', ...Array(7).fill('exists')])
    expect((await store.read('a'))?.toString()).toBe(`${answers.indexOf('created')}`)
  })

  test('says that nothing was written when nobody answers', async ({ world }) => {
    const { proxy, store } = world
    await proxy.close()
    await expect(store.create('a', bytes('mine'))).rejects.toEqual(code('STORE_UNAVAILABLE'))
  })
})

describe('large objects', () => {
  const large = [randomBytes(12_000_000)]
  const uploads = async ({ emulator, bucket: Bucket }: { emulator: Emulator; bucket: string }) => {
    const client = new S3Client({ ...emulator.client, forcePathStyle: true })
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket }))
    client.destroy()
    return Uploads.length
  }

  test('go up in parts, each of which may be lost or repeated', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(put, { fault: 'answer-lost' })
    proxy.plan(put, { fault: 'request-lost' })
    proxy.plan(put, { fault: 'repeated', answer: 'first' })
    expect(await store.create('large', large)).toBe('created')
    expect(large[0].equals((await store.read('large'))!)).toBe(true)
    expect(await store.create('large', large)).toBe('exists')
    expect(await uploads(world)).toBe(0)
  })

  test('case 1: an answer that was lost at the end is unknown, and read back', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(complete, { fault: 'answer-lost' })
    await expect(sealBytes(store, 'large', large)).resolves.toMatchObject({ bytes: 12_000_000 })
    expect(await uploads(world)).toBe(0)
  })

  test('case 8: a conflict at the end begins anew', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(complete, answered(409, 'ConditionalRequestConflict'))
    expect(await store.create('large', large)).toBe('created')
    expect(await uploads(world)).toBe(0)
  })

  test('leave no parts behind when they cannot be written', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(put, answered(403, 'AccessDenied'), 100)
    await expect(store.create('large', large)).rejects.toEqual(code('AWS_ACCESS_DENIED'))
    expect(await uploads(world)).toBe(0)
  })
})

describe('reading', () => {
  test('reads again what was lost, cut off, throttled or damaged on its way', async ({ world }) => {
    const { proxy, store } = world
    await store.create('a', bytes('some bytes'))
    for (const fault of [
      { fault: 'answer-lost' },
      { fault: 'damaged' },
      answered(500, 'InternalError'),
      answered(503, 'SlowDown'),
    ] as const) {
      proxy.plan(get, fault)
      expect((await store.read('a'))?.toString()).toBe('some bytes')
    }
    expect(proxy.left).toBe(0)
  })

  test('calls damaged what stays damaged', async ({ world }) => {
    const { proxy, store } = world
    await store.create('a', bytes('some bytes'))
    proxy.plan(get, { fault: 'damaged' }, 100)
    await expect(store.read('a')).rejects.toEqual(code('OBJECT_DAMAGED'))
  })

  test('tells a forbidden object from a missing one', async ({ world }) => {
    const { proxy, store } = world
    expect(await store.read('a')).toBeNull()
    proxy.plan(get, answered(403, 'AccessDenied'))
    await expect(store.read('a')).rejects.toEqual(code('AWS_ACCESS_DENIED'))
    proxy.plan(get, answered(404, 'NoSuchBucket'))
    await expect(store.read('a')).rejects.toEqual(code('AWS_RESOURCE_MISSING'))
  })
})

describe('deleting', () => {
  const post = ({ method }: ProxiedCall) => method === 'POST'

  test('deletes again what was lost or throttled', async ({ world }) => {
    const { proxy, store } = world
    await store.create('a', bytes('1'))
    proxy.plan(post, { fault: 'answer-lost' })
    proxy.plan(post, answered(503, 'SlowDown'))
    await store.delete(['a', 'b'])
    expect(await store.read('a')).toBeNull()
    expect(proxy.left).toBe(0)
  })

  const failing = (key: string, name: string): ProxyFault => ({
    fault: 'answered',
    status: 200,
    code: '',
    xml: `<DeleteResult><Error><Key>${key}</Key><Code>${name}</Code><Message>as planned</Message></Error></DeleteResult>`,
  })

  test('tries the names again that failed alone', async ({ world }) => {
    const { proxy, store } = world
    for (const name of ['a', 'b']) await store.create(name, bytes('1'))
    proxy.plan(post, failing('b', 'InternalError'))
    await store.delete(['b'])
    expect(await store.read('b')).toBeNull()
    expect(await store.read('a')).not.toBeNull()
  })

  test('says which name it may not delete', async ({ world }) => {
    const { proxy, store } = world
    proxy.plan(post, failing('a', 'AccessDenied'))
    await expect(store.delete(['a', 'b'])).rejects.toThrow(/AWS_ACCESS_DENIED.*\ba: as planned/)
  })
})
