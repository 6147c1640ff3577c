/**
 * What every ledger must do, whatever keeps its heads: the obligations of `ports/ledger.ts` as checks.
 *
 * Several clients of one place stand for several processes. Checks race on purpose; none needs a clock.
 */
import assert from 'node:assert/strict'
import type { Ledger } from '../../ports/ledger.ts'
import { type Contract, type ContractPlace, type Obligation, refusedWith } from './contract.ts'
import { sampleHead, sampleItem } from './heads.ts'

type Place = ContractPlace<Ledger>
type Check = (ledger: Ledger, place: Place) => Promise<void>

const begin = (ledger: Ledger, pipeline = 'p', revision = 1) =>
  ledger.create(sampleHead(pipeline, revision), sampleItem(0))

/** Everything the ledger says of a pipeline; equal before and after what must change nothing. */
const everything = async (ledger: Ledger, pipeline = 'p') => ({
  head: await ledger.read(pipeline),
  history: await ledger.histories(pipeline, 0, 1_000),
  wakes: await ledger.wakes(pipeline),
  pipelines: await ledger.pipelines(),
})

async function clients(ledger: Ledger, place: Place, count: number): Promise<Ledger[]> {
  const others = await Promise.all(Array.from({ length: count - 1 }, () => place.open()))
  return [ledger, ...others]
}

const creating: Record<string, Check> = {
  'knows nothing at first': async (ledger) => {
    assert.deepEqual(await everything(ledger), { head: null, history: [], wakes: 0, pipelines: [] })
    assert.equal(await ledger.history('p', 0), null)
  },
  'creates a head with its history item': async (ledger) => {
    assert.equal(await ledger.create(sampleHead('p', 7), sampleItem(0)), 'created')
    assert.deepEqual(await ledger.read('p'), sampleHead('p', 7))
    assert.deepEqual(await ledger.history('p', 0), sampleItem(0))
    assert.equal(await ledger.swap(7, sampleHead('p', 8)), 'swapped')
  },
  'creates no second head': async (ledger) => {
    await begin(ledger)
    const before = await everything(ledger)
    assert.equal(await ledger.create(sampleHead('p', 1, 'second'), sampleItem(0, 'second')), 'exists')
    assert.equal(await ledger.create(sampleHead('p', 5, 'third'), sampleItem(0, 'third')), 'exists')
    assert.deepEqual(await everything(ledger), before)
  },
  'lets one of many creators win, with its own history item': async (ledger, place) => {
    const all = await clients(ledger, place, 3)
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, writer) =>
        all[writer % 3]!.create(sampleHead('p', 1, `${writer}`), sampleItem(0, `${writer}`)),
      ),
    )
    assert.deepEqual(results.toSorted(), ['created', ...Array(11).fill('exists')])
    const winner = `${results.indexOf('created')}`
    assert.equal((await ledger.read('p'))?.write, winner)
    assert.equal((await ledger.history('p', 0))?.attempt, winner)
  },
  'refuses what never comes from the protocol': async (ledger) => {
    await refusedWith('ASSERTION_FAILED', () => ledger.create(sampleHead('p', 1), sampleItem(1)))
    await refusedWith('ASSERTION_FAILED', () => ledger.create(sampleHead('', 1), sampleItem(0)))
    await begin(ledger)
    const before = await everything(ledger)
    for (const revision of [0, 1, 3, 2.5]) {
      await refusedWith('ASSERTION_FAILED', () => ledger.swap(1, sampleHead('p', revision)))
    }
    await refusedWith('ASSERTION_FAILED', () => ledger.swap(1, sampleHead('p', 2), { history: sampleItem(-1) }))
    await refusedWith('ASSERTION_FAILED', () => ledger.swap(1, sampleHead('p', 2), { wakes: 0.5 }))
    assert.deepEqual(await everything(ledger), before)
  },
}

const swapping: Record<string, Check> = {
  'swaps a head whose revision is the expected one': async (ledger) => {
    await begin(ledger)
    assert.equal(await ledger.swap(1, sampleHead('p', 2, 'mine')), 'swapped')
    assert.deepEqual(await ledger.read('p'), sampleHead('p', 2, 'mine'))
  },
  'changes nothing when the head has moved': async (ledger) => {
    await begin(ledger)
    await ledger.swap(1, sampleHead('p', 2, 'mine'))
    const before = await everything(ledger)
    const stale = { history: sampleItem(1), wakes: 0 }
    assert.equal(await ledger.swap(1, sampleHead('p', 2, 'late')), 'moved')
    assert.equal(await ledger.swap(1, sampleHead('p', 2, 'late'), stale), 'moved')
    assert.equal(await ledger.swap(5, sampleHead('p', 6, 'early'), stale), 'moved')
    assert.deepEqual(await everything(ledger), before)
  },
  'refuses a head of the same revision that another write made': async (ledger) => {
    await begin(ledger)
    await ledger.swap(1, sampleHead('p', 2, 'mine'))
    const before = await everything(ledger)
    assert.equal(await ledger.swap(2, sampleHead('p', 3), { seen: 'of a lost life' }), 'moved')
    assert.equal(await ledger.swap(2, sampleHead('p', 3), { seen: 'lost', wakes: 0, history: sampleItem(1) }), 'moved')
    assert.deepEqual(await everything(ledger), before)
    assert.equal(await ledger.swap(2, sampleHead('p', 3, 'next'), { seen: 'mine' }), 'swapped')
    assert.equal(await ledger.swap(3, sampleHead('p', 4), { seen: 'next', history: sampleItem(1) }), 'swapped')
  },
  'makes no head of a pipeline that has none': async (ledger) => {
    assert.equal(await ledger.swap(0, sampleHead('p', 1), { history: sampleItem(1) }), 'moved')
    assert.deepEqual(await everything(ledger), { head: null, history: [], wakes: 0, pipelines: [] })
  },
  'adds the history item in the same write': async (ledger, place) => {
    const other = await place.open()
    await begin(ledger)
    assert.equal(await ledger.swap(1, sampleHead('p', 2), { history: sampleItem(1) }), 'swapped')
    assert.deepEqual(await other.history('p', 1), sampleItem(1))
    assert.equal((await other.read('p'))?.revision, 2)
  },
  'refuses an epoch that the history has already': async (ledger) => {
    await begin(ledger)
    await ledger.swap(1, sampleHead('p', 2), { history: sampleItem(1, 'mine') })
    const before = await everything(ledger)
    assert.equal(await ledger.swap(2, sampleHead('p', 3), { history: sampleItem(1, 'other') }), 'moved')
    assert.equal(await ledger.swap(2, sampleHead('p', 3), { history: sampleItem(1, 'mine') }), 'moved')
    assert.equal(await ledger.swap(2, sampleHead('p', 3), { history: sampleItem(0) }), 'moved')
    assert.deepEqual(await everything(ledger), before)
    assert.equal(await ledger.swap(2, sampleHead('p', 3), { history: sampleItem(2) }), 'swapped')
  },
  'lets one of many swaps win': async (ledger, place) => {
    const all = await clients(ledger, place, 4)
    await begin(ledger)
    for (let revision = 1; revision <= 5; revision++) {
      const results = await Promise.all(
        Array.from({ length: 12 }, (_, writer) =>
          all[writer % 4]!.swap(revision, sampleHead('p', revision + 1, `${writer}`), {
            history: sampleItem(revision, `${writer}`),
          }),
        ),
      )
      assert.deepEqual(results.toSorted(), [...Array(11).fill('moved'), 'swapped'])
      const winner = `${results.indexOf('swapped')}`
      assert.equal((await ledger.read('p'))?.write, winner)
      assert.equal((await ledger.history('p', revision))?.attempt, winner)
    }
  },
  'loses no update of many writers that read, change and swap': async (ledger, place) => {
    const all = await clients(ledger, place, 4)
    await begin(ledger)
    const addTen = async (client: Ledger) => {
      for (let added = 0; added < 10; ) {
        const head = (await client.read('p'))!
        const next = { ...head, revision: head.revision + 1, generation: head.generation + 1 }
        if ((await client.swap(head.revision, next)) === 'swapped') added++
      }
    }
    await Promise.all(all.map(addTen))
    const head = (await ledger.read('p'))!
    assert.deepEqual([head.revision, head.generation], [41, sampleHead('p', 1).generation + 40])
  },
}

const waking: Record<string, Check> = {
  'counts rings apart from the head': async (ledger, place) => {
    const other = await place.open()
    assert.equal(await ledger.ring('p'), 1)
    await begin(ledger)
    assert.equal(await ledger.wakes('p'), 1)
    assert.equal(await other.ring('p'), 2)
    assert.equal(await ledger.wakes('p'), 2)
    assert.equal(await ledger.wakes('q'), 0)
    assert.deepEqual(await ledger.read('p'), sampleHead('p', 1))
    assert.deepEqual(await ledger.pipelines(), ['p'])
  },
  'counts every ring of many': async (ledger, place) => {
    const all = await clients(ledger, place, 4)
    const counts = await Promise.all(Array.from({ length: 40 }, (_, index) => all[index % 4]!.ring('p')))
    assert.deepEqual(
      counts.toSorted((a, b) => a - b),
      Array.from({ length: 40 }, (_, index) => index + 1),
    )
    assert.equal(await ledger.wakes('p'), 40)
  },
  'swaps on a wake counter only while it is unchanged': async (ledger) => {
    await begin(ledger)
    assert.equal(await ledger.swap(1, sampleHead('p', 2), { wakes: 1 }), 'moved')
    assert.equal(await ledger.swap(1, sampleHead('p', 2), { wakes: 0 }), 'swapped')
    await ledger.ring('p')
    const before = await everything(ledger)
    assert.equal(await ledger.swap(2, sampleHead('p', 3), { wakes: 0, history: sampleItem(1) }), 'moved')
    assert.deepEqual(await everything(ledger), before)
    assert.equal(await ledger.swap(2, sampleHead('p', 3), { wakes: 1, history: sampleItem(1) }), 'swapped')
    assert.equal(await ledger.swap(3, sampleHead('p', 4)), 'swapped')
    assert.equal(await ledger.wakes('p'), 1)
  },
  'never lets a run leave past a ring that it did not see': async (ledger, place) => {
    const other = await place.open()
    await begin(ledger)
    for (let revision = 1; revision <= 20; revision++) {
      const seen = await ledger.wakes('p')
      const leave = async () => {
        const result = await ledger.swap(revision, sampleHead('p', revision + 1, 'left'), { wakes: seen })
        return { result, wakes: await ledger.wakes('p') }
      }
      const ring = async () => ({ count: await other.ring('p'), head: (await other.read('p'))! })
      const [left, rung] = await Promise.all([leave(), ring()])
      // Either the run saw the ring and stays, or whoever rings sees a pipeline that was left.
      if (left.result === 'moved') {
        assert.equal(left.wakes, rung.count)
        assert.equal(await ledger.swap(revision, sampleHead('p', revision + 1)), 'swapped')
      } else assert.equal(rung.head.write, 'left')
    }
  },
}

const reading: Record<string, Check> = {
  'reads history by ranges, in the order of numbers': async (ledger) => {
    await begin(ledger)
    for (let epoch = 1; epoch <= 12; epoch++) {
      await ledger.swap(epoch, sampleHead('p', epoch + 1), { history: sampleItem(epoch) })
    }
    const epochs = async (from: number, to: number) => (await ledger.histories('p', from, to)).map(({ epoch }) => epoch)
    assert.deepEqual(await epochs(0, 13), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    assert.deepEqual(await epochs(2, 11), [2, 3, 4, 5, 6, 7, 8, 9, 10])
    assert.deepEqual(await epochs(12, 500), [12])
    assert.deepEqual(await epochs(13, 20), [])
    assert.deepEqual(await epochs(5, 5), [])
    assert.deepEqual(await epochs(9, 3), [])
    assert.deepEqual(await ledger.histories('p', 11, 12), [sampleItem(11)])
    assert.equal(await ledger.history('p', 13), null)
    assert.deepEqual(await ledger.histories('q', 0, 10), [])
  },
  'keeps pipelines apart, whatever their names': async (ledger) => {
    const names = ['a', 'a/b', "it's", 'über', 'z%_*']
    for (const name of names.toReversed()) await begin(ledger, name)
    assert.deepEqual((await ledger.pipelines()).toSorted(), names.toSorted())
    assert.equal(await ledger.swap(1, sampleHead('a', 2), { history: sampleItem(1) }), 'swapped')
    await ledger.ring('a')
    for (const name of names.slice(1)) {
      assert.deepEqual(await ledger.read(name), sampleHead(name, 1))
      assert.equal(await ledger.history(name, 1), null)
      assert.equal(await ledger.wakes(name), 0)
    }
  },
  'keeps a head of 300 KB to the byte': async (ledger) => {
    await begin(ledger)
    const lanes = Array.from({ length: 4_000 }, (_, lane) => ({ sink: 'out', lane, target: `kafka:${'ß'.repeat(20)}` }))
    const head = { ...sampleHead('p', 2), lanes }
    assert.ok(Buffer.byteLength(JSON.stringify(head)) > 300_000)
    assert.equal(await ledger.swap(1, head, { history: sampleItem(1) }), 'swapped')
    assert.deepEqual(await ledger.read('p'), head)
  },
  'keeps what is JSON and nothing else': async (ledger) => {
    const head = { ...sampleHead('p', 1), later: { kept: [null, 1.5, 'x'] }, lost: undefined, call: () => 1 }
    await ledger.create(head, sampleItem(0))
    const { lost, call, ...rest } = head
    assert.equal(typeof call, 'function')
    assert.equal(lost, undefined)
    assert.deepEqual(await ledger.read('p'), rest)
  },
  'keeps no hold on the objects of its caller': async (ledger) => {
    const given = { ...sampleHead('p', 1), lanes: [{ sink: 'out', lane: 0, target: 'x' }] }
    await ledger.create(given, sampleItem(0))
    given.lanes.pop()
    const taken = (await ledger.read('p'))! as typeof given
    assert.equal(taken.lanes.length, 1)
    taken.lanes.pop()
    assert.equal((await ledger.read('p'))!.lanes.length, 1)
  },
  'lets other clients see a write as soon as it returned': async (ledger, place) => {
    const other = await place.open()
    assert.equal(await other.read('p'), null)
    await begin(ledger)
    for (let revision = 1; revision <= 20; revision++) {
      assert.equal((await other.read('p'))?.revision, revision)
      await ledger.swap(revision, sampleHead('p', revision + 1))
    }
  },
  'keeps everything when it is closed and opened again': async (ledger, place) => {
    await begin(ledger)
    await ledger.swap(1, sampleHead('p', 2), { history: sampleItem(1) })
    await ledger.ring('p')
    const before = await everything(ledger)
    await ledger.close()
    const again = await place.open()
    assert.deepEqual(await everything(again), before)
    assert.equal(await again.swap(2, sampleHead('p', 3), { wakes: 1 }), 'swapped')
  },
}

/** The contract of `Ledger`. */
export const ledgerContract: Contract<Ledger> = {
  port: 'ledger',
  obligations: Object.entries({ ...creating, ...swapping, ...waking, ...reading }).map(
    ([name, check]): Obligation<Ledger> => ({ name, check: async (place) => check(await place.open(), place) }),
  ),
}
