/**
 * Randomness from a seed, for simulations: the same seed, the same ids.
 *
 * Beside the port it draws numbers, so that one seed decides a whole run.
 */
import { type Prng, prng } from '../../model/prng.ts'
import type { Random } from '../../ports/system.ts'

export interface SeededRandom extends Random, Prng {}

/** A generator for a seed that is a safe integer. Ids are unique within one seed for all practical purposes. */
export function seededRandom(seed: number): SeededRandom {
  return prng(seed)
}
