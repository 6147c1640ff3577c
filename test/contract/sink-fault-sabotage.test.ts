import { describe, expect, test } from 'vitest'
import { memorySink } from '../../lib/adapters/memory/sink.ts'
import { PawlError } from '../../lib/model/errors.ts'
import type { Sink } from '../../lib/ports/sink.ts'
import type { Store } from '../../lib/ports/store.ts'
import { contractCases } from '../../lib/testing/contracts/contract.ts'
import { sinkFaultContract } from '../../lib/testing/contracts/sink-faults.ts'
import { contractRowSpec, type SinkControls } from '../../lib/testing/contracts/sink-subject.ts'
import { sabotagedSink } from '../../lib/testing/sabotage.ts'
import { memoryPlace } from '../support/sink-implementations.ts'

/** What a client makes of a lost answer of its server: what it should, or a guess. */
type Guess = 'none' | 'promoted' | 'registered'

/** A sink in memory whose clients reach it over a network that can be cut. */
async function networked(guess: Guess, broken: (sink: ReturnType<typeof memorySink>, store: Store) => Sink) {
  const sink = memorySink({ id: 'rows', spec: contractRowSpec })
  const { store, controls } = await (await memoryPlace()).open()
  let cut: { left: number; readonly when: 'before' | 'after' } | null = null
  const exchange = async <T>(deed: () => Promise<T>, guessed: T | null): Promise<T> => {
    const strikes = cut !== null && cut.left-- === 0
    if (strikes && cut?.when === 'before') return lost(guessed)
    const answer = await deed()
    return strikes ? lost(guessed) : answer
  }
  const over = async (other: Store): Promise<Sink> => {
    const client = broken(sink, other)
    return {
      ...client,
      base: (lane, marker) => exchange(() => client.base(lane, marker), guess === 'registered' ? marker : null),
      promote: (...of) => exchange(() => client.promote(...of), guess === 'promoted' ? { result: 'promoted' } : null),
    }
  }
  const seen: SinkControls = {
    ...controls,
    visible: async () => sink.visible().map(({ value }) => ({ key: null, value: String(value), timestampMs: 0 })),
    dropMarker: async (lane) => sink.dropMarker(lane),
    async disturb(nth, when) {
      const mine = { left: nth, when }
      cut = mine
      return async () => {
        cut = null
        return mine.left < 0
      }
    },
  }
  return { open: async () => ({ sink: await over(store), store, controls: seen, over }) }
}

function lost<T>(guessed: T | null): T {
  if (guessed === null) throw new PawlError('UNKNOWN_RESULT', 'the network')
  return guessed
}

/** Obligations that such a sink does not keep. */
async function brokenBy(guess: Guess, broken: Parameters<typeof networked>[1]): Promise<string[]> {
  const failed: string[] = []
  for (const { name, run } of contractCases(sinkFaultContract, {
    name: guess,
    fresh: () => networked(guess, broken),
  })) {
    await run().catch(() => failed.push(name))
  }
  return failed
}

const sound: Parameters<typeof networked>[1] = (sink, store) => sink.open(store)

describe('the contract of sinks under faults', () => {
  test('finds nothing wrong with a sink that keeps the rules, made of the same parts', async () => {
    expect(await brokenBy('none', sound)).toEqual([])
  })

  test('finds the sink that takes a promotion whose answer was lost for done', async () => {
    expect(await brokenBy('promoted', sound)).toEqual([
      'loses and repeats nothing when any exchange with the sink is cut',
    ])
  })

  test('finds the sink that takes a lane for registered when the answer was lost', async () => {
    expect(await brokenBy('registered', sound)).toEqual([
      'gives a lane one base marker when any exchange with the sink is cut',
    ])
  })

  test('finds the sink that writes its marker after its rows', async () => {
    const apart: typeof sound = (sink, store) => sabotagedSink(sink, store, 'rows-then-marker')
    expect(await brokenBy('none', apart)).toEqual([
      'loses and repeats nothing when its process dies at any call of the store',
      'loses and repeats nothing when any answer of the store is lost',
    ])
  })
})
