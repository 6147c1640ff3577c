import { expect, test } from 'vitest'
import { memoryLedger } from '../../lib/adapters/memory/ledger.ts'
import { systemRandom } from '../../lib/adapters/system/random.ts'
import { type Beginning, begin, end, unconfirmedOf } from '../../lib/epoch/begin.ts'
import { PawlError } from '../../lib/model/errors.ts'
import type { Head } from '../../lib/model/head.ts'
import type { Ledger } from '../../lib/ports/ledger.ts'
import { headWith } from './support.ts'

const run = {
  pipeline: 'counting',
  id: 'run-1',
  sequence: 1,
  place: 'here',
  lingerMs: 0,
  resume: false,
  startedAtMs: 0,
}
const input = { run, generation: 3, epoch: 5, sink: 'mail', lane: 0 }

/** A head with epoch 5 committed and not promoted, and what begins promotions there. */
async function bench(wrap: (ledger: Ledger) => Partial<Ledger> = () => ({})) {
  const ledger = memoryLedger()
  const { committed } = headWith()
  const head = headWith({ committed: { ...committed, epoch: 5 }, promotedThrough: 4 })
  const { attempt, manifest } = head.committed
  await ledger.create(head, { epoch: 0, attempt, generation: 0, manifest, atMs: 0 })
  const job = {
    compiled: { topology: { pipeline: 'counting' } },
    place: { ledger: { ...ledger, ...wrap(ledger) }, random: systemRandom() },
  } as unknown as Beginning['job']
  const by = (invocation: string): Beginning => ({ job, input, committable: { rows: 7 } as never, invocation })
  return { ledger, by, head: async () => (await ledger.read('counting'))! }
}

/** Somebody else writes the head. */
async function writeBeside(ledger: Ledger, change: Partial<Head> = {}): Promise<void> {
  const head = (await ledger.read('counting'))!
  await ledger.swap(head.revision, { ...head, ...change, revision: head.revision + 1, write: `${head.revision}-other` })
}

test('one invocation may promote; whoever comes after it makes its end unknown', async () => {
  const { by, head } = await bench()
  expect(await begin(by('a'))).toBe('mine')
  expect(await begin(by('b'))).toBe('unknown')
  expect(await begin(by('c'))).toBe('unknown')
  expect(unconfirmedOf(await head(), 5)).toEqual([{ epoch: 5, sink: 'mail', lane: 0, rows: 7, code: 'UNKNOWN_RESULT' }])
})

test('an end that becomes known is believed, whenever its invocation tells it', async () => {
  const { by, head } = await bench()
  await begin(by('a'))
  await begin(by('b'))
  await end(by('b'), 'done', null)
  expect(await begin(by('c'))).toBe('unknown')
  await end(by('a'), 'done', null)
  expect(await begin(by('d'))).toBe('done')
  expect(unconfirmedOf(await head(), 5)).toEqual([])
})

test('a begin that is withdrawn may be made again', async () => {
  const { by } = await bench()
  await begin(by('a'))
  await end(by('a'), null, null)
  expect(await begin(by('b'))).toBe('mine')
})

test('a begin is looked up when its answer is lost: it landed, or it lost its race and is made again', async () => {
  for (const landed of [true, false]) {
    let swaps = 0
    const { by, head } = await bench((ledger) => ({
      async swap(expected, wanted, options) {
        if (++swaps > 1) return ledger.swap(expected, wanted, options)
        // Other lanes write before or after, so that the head has moved on either way.
        if (!landed) await writeBeside(ledger)
        await ledger.swap(expected, wanted, options)
        await writeBeside(ledger)
        throw new PawlError('UNKNOWN_RESULT', 'the answer is lost')
      },
    }))
    expect(await begin(by('a'))).toBe('mine')
    expect((await head()).begun).toMatchObject([{ invocation: 'a', state: 'begun' }])
  }
})

test('a run that was taken over begins nothing', async () => {
  const { by, ledger, head } = await bench()
  await writeBeside(ledger, { generation: 4 })
  await expect(begin(by('a'))).rejects.toMatchObject({ code: 'FENCED' })
  expect((await head()).begun).toBeUndefined()
})
