/**
 * A tiny pipeline over the real store and ledger, with one fault at a time: at every second port call of its process, and on the
 * sockets between the adapters and AWS. The whole enumeration runs on the memory adapters, which keep the same contract.
 */
import { randomBytes } from 'node:crypto'
import { describe, expect } from 'vitest'
import { dynamoLedger } from '../../lib/adapters/dynamodb/ledger.ts'
import { s3Store } from '../../lib/adapters/s3/store.ts'
import { prng } from '../../lib/model/prng.ts'
import type { Fault, FaultScript } from '../../lib/testing/gate.ts'
import { passthrough, wordCount } from '../simulation/pipelines.ts'
import { awsTest, type Emulator } from '../support/aws.ts'
import { freshBucket, freshTable } from '../support/aws-places.ts'
import { type AwsRun, runOnAws } from '../support/aws-world.ts'
import { faultProxy, type ProxiedCall, type ProxyFault } from '../support/fault-proxy.ts'

const faults: readonly Fault[] = [
  { fault: 'crash-before' },
  { fault: 'crash-after' },
  { fault: 'reply-lost' },
  { fault: 'refused' },
  { fault: 'repeated', answer: 'second' },
  { fault: 'late', calls: 7 },
  { fault: 'zombie', calls: 12 },
  { fault: 'timeout', calls: 1e9 },
]
/** Every call is enumerated on the memory adapters. */
const stride = 2
const settings = {
  epoch: { spanMax: 3, fuseSpanMax: 1000, fuseMs: 0, convictAfter: 1_000_000 },
  retain: { epochs: 100 },
}
const calm: (actor: number) => FaultScript = () => () => null

/** Runs on a table and a prefix of its own. */
async function run(
  emulator: Emulator,
  bucket: string,
  endpoint: string,
  what: Pick<AwsRun, 'sample' | 'script' | 'audited'>,
) {
  const client = { ...emulator.client, endpoint }
  const ledger = dynamoLedger({ ...client, table: await freshTable(emulator) })
  const prefix = `${randomBytes(6).toString('hex')}/`
  const store = s3Store({ ...client, bucket, prefix, forcePathStyle: true })
  try {
    return await runOnAws({ ...what, settings, ledger, store })
  } finally {
    await ledger.close()
    await store.close()
  }
}

describe('a pipeline over S3 and DynamoDB', () => {
  awsTest('loses and repeats nothing whichever port call goes wrong', async ({ emulator }) => {
    const bucket = await freshBucket(emulator)
    const sample = passthrough(3)
    const calls = await run(emulator, bucket, emulator.endpoint, { sample, script: calm, audited: true })
    for (let at = 0; at < calls; at += stride) {
      const fault = faults[(at / stride) % faults.length]!
      const script =
        (actor: number): FaultScript =>
        ({ index }) =>
          actor === 0 && index === at ? fault : null
      await run(emulator, bucket, emulator.endpoint, { sample, script, audited: true }).catch((error: unknown) => {
        throw new Error(`${fault.fault} at call ${at}`, { cause: error })
      })
    }
    expect(calls).toBeGreaterThan(20)
  })

  awsTest('cases 1, 2, 4 to 8: loses and repeats nothing whatever happens on the way to AWS', async ({ emulator }) => {
    const bucket = await freshBucket(emulator)
    const proxy = await faultProxy(emulator.endpoint)
    const answered = (status: number, code: string, passedOn = false): ProxyFault => ({
      fault: 'answered',
      status,
      code,
      passedOn,
    })
    const dynamo: readonly ProxyFault[] = [
      { fault: 'answer-lost' },
      { fault: 'request-lost' },
      { fault: 'repeated', answer: 'second' },
      { fault: 'late', afterMs: 60 },
      answered(500, 'InternalServerError', true),
      answered(400, 'TransactionInProgressException', true),
      answered(400, 'ThrottlingException'),
    ]
    const s3: readonly ProxyFault[] = [
      { fault: 'answer-lost' },
      { fault: 'request-lost' },
      { fault: 'repeated', answer: 'second' },
      { fault: 'late', afterMs: 60 },
      answered(500, 'InternalError', true),
      answered(503, 'SlowDown'),
    ]
    for (let seed = 1; seed <= 6; seed++) {
      const random = prng(seed)
      proxy.forget()
      const plan = (kinds: readonly ProxyFault[], isWrite: (call: ProxiedCall) => boolean) => {
        for (const fault of kinds) proxy.plan((call) => isWrite(call) && random.int(20) === 0, fault, 1_000)
      }
      plan(dynamo, ({ operation }) => /^(PutItem|TransactWriteItems|UpdateItem)$/.test(operation))
      plan(
        [answered(409, 'ConditionalRequestConflict')],
        ({ operation, method }) => operation === '' && method === 'PUT',
      )
      plan(s3, ({ operation, method }) => operation === '' && /^(PUT|POST)$/.test(method))
      await run(emulator, bucket, proxy.endpoint, { sample: wordCount(4), script: calm, audited: false }).catch(
        (error: unknown) => {
          throw new Error(`seed ${seed}`, { cause: error })
        },
      )
      expect(proxy.left).toBeLessThan(1_000 * (dynamo.length + s3.length + 1) - 5)
    }
    await proxy.close()
  })
})
