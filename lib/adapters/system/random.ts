/**
 * Real randomness: ids that no other process ever draws.
 */
import { randomBytes } from 'node:crypto'
import type { Random } from '../../ports/system.ts'

/** 128 bits from the operating system's generator. */
export function systemRandom(): Random {
  return { id: () => randomBytes(16).toString('hex') }
}
