/**
 * Faults: what can go wrong at one port call of a simulated process.
 *
 * Apart from the gate, which makes them happen, because they are drawn, enumerated and told elsewhere.
 */
import type { Prng } from '../model/prng.ts'

/** What can go wrong at one call. */
export type Fault =
  /** The process dies; the call was not made, or was made. */
  | { readonly fault: 'crash-before' | 'crash-after' }
  /** The call was made; its answer is lost. */
  | { readonly fault: 'reply-lost' }
  /** The call was not made, and the answer says that it is unknown or not possible now. */
  | { readonly fault: 'refused' }
  /** The answer is lost, and the call is made only later, after `calls` calls of the world. */
  | { readonly fault: 'late'; readonly calls: number }
  /** The call was made twice; the first or the second answer arrives. */
  | { readonly fault: 'repeated'; readonly answer: 'first' | 'second' }
  /** The process stops here and goes on after `calls` calls of the world, or when nothing else is left. */
  | { readonly fault: 'zombie'; readonly calls: number }
  /** As `zombie`, but the step is told that it timed out, and the machine goes on without it. */
  | { readonly fault: 'timeout'; readonly calls: number }

/** All kinds, for drawing. */
export const faultKinds: readonly Fault['fault'][] = [
  'crash-before',
  'crash-after',
  'reply-lost',
  'refused',
  'late',
  'repeated',
  'zombie',
  'timeout',
]

/** Every way in which one call can go wrong, with zombies that come back before, during and after their successor. */
export const everyFault: readonly Fault[] = [
  { fault: 'crash-before' },
  { fault: 'crash-after' },
  { fault: 'reply-lost' },
  { fault: 'refused' },
  { fault: 'repeated', answer: 'first' },
  { fault: 'repeated', answer: 'second' },
  ...[1, 7, 30].map((calls) => ({ fault: 'late', calls }) as const),
  ...[3, 24, 40, 75, 1e9].map((calls) => ({ fault: 'zombie', calls }) as const),
  ...[2, 9, 25, 1e9].map((calls) => ({ fault: 'timeout', calls }) as const),
]

/** Draws one fault of the given kinds. */
export function drawFault(random: Prng, from: readonly Fault['fault'][]): Fault {
  const fault = random.pick(from)
  const calls = random.pick([1, 3, 10, 40, 200])
  switch (fault) {
    case 'late':
    case 'zombie':
    case 'timeout':
      return { fault, calls }
    case 'repeated':
      return { fault, answer: random.pick(['first', 'second']) }
    default:
      return { fault }
  }
}

/** A fault in words, at the call where it strikes. */
export function faultWords(fault: Fault, port: string, method: string): string {
  const call = `${port}.${method}`
  switch (fault.fault) {
    case 'crash-before':
      return `✗ dies before ${call}`
    case 'crash-after':
      return `✗ dies after ${call}, which was done`
    case 'reply-lost':
      return `✗ loses the answer of ${call}, which was done`
    case 'refused':
      return `✗ gets no answer from ${call}, which was not done`
    case 'late':
      return `✗ gets no answer from ${call}, which is done ${fault.calls} calls later`
    case 'repeated':
      return `✗ makes ${call} twice and hears the ${fault.answer} answer`
    case 'zombie':
      return `✗ stalls before ${call}, for ${fault.calls} calls of the others`
    case 'timeout':
      return `✗ times out at ${call}, which goes on after ${fault.calls} calls`
  }
}
