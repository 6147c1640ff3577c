import { describe, expect, test } from 'vitest'
import { amend } from '../../lib/epoch/amend.ts'
import { create } from '../../lib/epoch/create.ts'
import { PawlError } from '../../lib/index.ts'
import type { Head } from '../../lib/model/head.ts'
import type { FaultScript } from '../../lib/testing/gate.ts'
import { workbench } from './support.ts'

const raise = (head: Head) => ({ ...head, generation: head.generation + 1 })

/** A bench with a head, whose swaps meet the given faults, one each. */
async function bench(faults: ReturnType<FaultScript>[] = []) {
  let armed = false
  const at = workbench({
    script: ({ method }) => (armed && method === 'swap' ? (faults.shift() ?? null) : null),
  })
  await create(at.job, at.run)
  armed = true
  return at
}

const other = async (at: Awaited<ReturnType<typeof bench>>) => {
  const head = await at.head()
  await at.world.ledger.swap(head.revision, { ...head, revision: head.revision + 1, write: 'other' })
}

/** The job, with something that happens right before or after each swap. */
function swapping(at: Awaited<ReturnType<typeof bench>>, before: () => Promise<void>, after: () => Promise<void>) {
  const { ledger } = at.job.place
  const swap: typeof ledger.swap = async (...args) => {
    await before()
    try {
      return await ledger.swap(...args)
    } finally {
      await after()
    }
  }
  return { ...at.job, place: { ...at.job.place, ledger: { ...ledger, swap } } }
}

describe('a write of the head', () => {
  test('applies once when nothing goes wrong, and counts the revision', async () => {
    const at = await bench()
    const { result, head } = await amend(at.job, raise)
    expect([result, head.generation, head.revision]).toEqual(['applied', 1, 2])
    expect(await at.head()).toEqual(head)
  })

  test('case 1, case 4: is found by its own id when its answer is lost, and applied once', async () => {
    const at = await bench([{ fault: 'reply-lost' }])
    expect((await amend(at.job, raise)).result).toBe('applied')
    expect((await at.head()).generation).toBe(1)
  })

  test('is repeated when it was not made', async () => {
    const at = await bench([{ fault: 'refused' }, { fault: 'refused' }])
    expect((await amend(at.job, raise)).result).toBe('applied')
    expect((await at.head()).generation).toBe(1)
  })

  test('case 16: is judged anew when another write came first', async () => {
    const at = await bench()
    let others = 1
    const job = swapping(
      at,
      async () => (others-- > 0 ? other(at) : undefined),
      async () => {},
    )
    const { result, head } = await amend(job, raise)
    expect([result, head.revision, (await at.head()).generation]).toEqual(['applied', 3, 1])
  })

  test('is declined by its own condition, and writes nothing', async () => {
    const at = await bench()
    const before = await at.head()
    expect(await amend(at.job, () => null)).toEqual({ result: 'declined', head: before })
    expect(await at.head()).toEqual(before)
  })

  test('is unclear when its answer was lost and the head has moved on past it', async () => {
    const at = await bench([{ fault: 'reply-lost' }])
    const job = swapping(
      at,
      async () => {},
      () => other(at),
    )
    const { result, head } = await amend(job, raise)
    expect([result, head.write]).toEqual(['unclear', 'other'])
  })

  test('is not carried out on a head of the same revision that a rewound ledger made anew', async () => {
    const at = await bench()
    const backup = at.world.ledger.snapshot()
    await amend(at.job, raise)
    let rewinds = 1
    const job = swapping(
      at,
      async () => {
        if (rewinds-- <= 0) return
        at.world.ledger.restore(backup)
        await other(at)
      },
      async () => {},
    )
    const seen: string[] = []
    const { result } = await amend(job, (head) => {
      seen.push(head.write)
      return raise(head)
    })
    expect([result, seen.length, seen[1], (await at.head()).generation]).toEqual(['applied', 2, 'other', 1])
  })

  test('is told when a ring came in since', async () => {
    const at = await bench()
    const wakes = await at.world.ledger.wakes('counting')
    await at.world.ledger.ring('counting')
    expect((await amend(at.job, raise, { wakes })).result).toBe('woken')
    expect((await at.head()).generation).toBe(0)
    expect((await amend(at.job, raise, { wakes: wakes + 1 })).result).toBe('applied')
  })

  test('gives up as busy when the head keeps moving, and as unknown when no answer ever comes', async () => {
    const busy = await bench()
    const job = swapping(
      busy,
      () => other(busy),
      async () => {},
    )
    await expect(amend(job, raise)).rejects.toMatchObject({ code: 'LEDGER_BUSY' })
    const silent = await bench(Array.from({ length: 100 }, () => ({ fault: 'refused' }) as const))
    await expect(amend(silent.job, raise)).rejects.toMatchObject({ code: 'UNKNOWN_RESULT' })
  })

  test('case 7: repeats what is unclear, judges anew what moved, and repeats nothing that the ledger refused', async () => {
    for (const [code, kind] of [
      ['LEDGER_UNAVAILABLE', 'Retryable'],
      ['LEDGER_DAMAGED', 'Corrupt'],
      ['LEDGER_TOO_NEW', 'Invalid'],
    ] as const) {
      const at = await bench()
      let swaps = 0
      const refuse = async () => {
        swaps++
        throw new PawlError(code, 'the ledger')
      }
      await expect(
        amend(
          swapping(at, refuse, async () => {}),
          raise,
        ),
      ).rejects.toMatchObject({ code, kind })
      expect([swaps, (await at.head()).generation]).toEqual([1, 0])
    }
  })

  test('needs a head', async () => {
    await expect(amend(workbench().job, raise)).rejects.toMatchObject({ code: 'PIPELINE_NOT_FOUND' })
  })
})
