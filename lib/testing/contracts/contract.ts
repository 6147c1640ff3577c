/**
 * What a contract suite is: the obligations of a port as checks that no test runner is needed for.
 *
 * An adapter's test loops over `contractCases` and hands each case to its runner. Where an implementation cannot
 * keep an obligation, it says so as data with a reason; the case then holds that it really does differ, so that
 * a difference that was mended does not stay declared.
 */
import assert from 'node:assert/strict'

/** The obligations of one port. */
export interface Contract<Subject> {
  readonly port: string
  readonly obligations: readonly Obligation<Subject>[]
}

/** One thing that every implementation must do, and the check that it does. */
export interface Obligation<Subject> {
  /** A sentence that goes on from the port's name: `never replaces an object`. */
  readonly name: string
  check(place: ContractPlace<Subject>): Promise<void>
}

/** Somewhere empty, for one check alone. */
export interface ContractPlace<Subject> {
  /** Another client of this same place, as another process would have. */
  open(): Promise<Subject>
}

/** An adapter as the contract sees it. */
export interface Implementation<Subject> {
  readonly name: string
  /** A new, empty place; `dispose` removes it after the check, with the clients that are still open. */
  fresh(): Promise<ContractPlace<Subject> & { dispose?(): Promise<void> }>
  /** Reasons by the name of the obligation that is not kept. */
  readonly differences?: Readonly<Record<string, string>>
}

/** What a test runner gets: a name and something to run, which rejects when the case fails. */
export interface ContractCase {
  readonly name: string
  run(): Promise<void>
}

/** One case for each obligation of the contract, to be run in any order. */
export function contractCases<Subject>(
  contract: Contract<Subject>,
  implementation: Implementation<Subject>,
): ContractCase[] {
  const differences = new Map(Object.entries(implementation.differences ?? {}))
  const cases = contract.obligations.map((obligation) => {
    const reason = differences.get(obligation.name)
    differences.delete(obligation.name)
    return contractCase(obligation, implementation, reason)
  })
  assert.deepEqual([...differences.keys()], [], `differences of ${implementation.name} that name no obligation`)
  return cases
}

function contractCase<Subject>(
  obligation: Obligation<Subject>,
  implementation: Implementation<Subject>,
  reason: string | undefined,
): ContractCase {
  const check = async () => {
    const place = await implementation.fresh()
    try {
      await obligation.check(place)
    } finally {
      await place.dispose?.()
    }
  }
  if (reason === undefined) return { name: obligation.name, run: check }
  return {
    name: `differs, since ${reason}: ${obligation.name}`,
    run: () => assert.rejects(check, `${implementation.name} keeps this obligation; drop its difference`),
  }
}

/** Holds that `call` is refused with a code, as a `PawlError` by shape. */
export async function refusedWith(code: string, call: () => Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error: Error & { code?: unknown }) => {
    assert.equal(error.code, code, error.stack)
    return true
  })
}

/** Everything that an async iterable yields. */
export async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
