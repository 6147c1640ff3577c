/**
 * The gate: every port call of a simulated process passes it, and may go wrong there.
 *
 * A process is nothing but its port calls. It dies by a call that never returns to it: from then on each of its calls
 * throws, so whatever its `catch` and `finally` still try has no effect. A stalled call is held until it is let go,
 * and then goes on as if nothing had happened, in a world that has moved on: a zombie.
 */
import { PawlError } from '../model/errors.ts'
import { type Fault, faultWords } from './fault.ts'

export type { Fault } from './fault.ts'

/** One call of a port by a simulated process. */
export interface Call {
  /** Counts the calls of this process, from 0. */
  readonly index: number
  readonly actor: number
  readonly port: string
  readonly method: string
}

/** Chooses the fault of a call. */
export type FaultScript = (call: Call) => Fault | null

/** Thrown by every call of a dead process. Matches no Retry and is caught by nothing that matters. */
export class Crash extends Error {
  override readonly name = 'Crash'
}

/** What the gates of all processes share. */
export interface GateHost {
  /** Counts one call of the world, runs what is due, and notes it in the trace. */
  called(call: Call): void
  /** Calls back once `calls` more calls have been made, or when nothing else is left to run. */
  after(calls: number, then: () => void): void
  note(text: string, actor?: number): void
}

export interface Gate {
  readonly actor: number
  readonly dead: boolean
  /** Resolves when the process stalls or dies: the driver need not wait for it. */
  readonly stuck: Promise<void>
  /** Rejects the steps that are under way, as a state machine does when they take too long. */
  readonly timedOut: (listener: (error: Error) => void) => () => void
  pass<R>(port: string, method: string, call: () => Promise<R>): Promise<R>
  /** The process dies at once, without a word. */
  kill(): void
}

const reads = new Set([
  'read',
  'list',
  'bounds',
  'resolve',
  'history',
  'histories',
  'wakes',
  'marker',
  'refused',
  'status',
  'pipelines',
])

export function gate(host: GateHost, actor: number, script: FaultScript): Gate {
  let dead = false
  let index = 0
  let becomeStuck = () => {}
  const stuck = new Promise<void>((resolve) => {
    becomeStuck = resolve
  })
  const listeners = new Set<(error: Error) => void>()

  const die = (): never => {
    dead = true
    becomeStuck()
    throw new Crash(`process ${actor} died`)
  }
  const mustLive = () => {
    if (dead) throw new Crash(`process ${actor} is dead`)
  }
  const stalled = async <R>(call: Call, calls: number, next: () => Promise<R>): Promise<R> => {
    becomeStuck()
    await new Promise<void>((resolve) => host.after(calls, resolve))
    host.note(`goes on at ${call.port}.${call.method}`, actor)
    mustLive()
    return next()
  }
  const unknown = (call: Call) => {
    const where = `${call.port}.${call.method}`
    return reads.has(call.method) ? new PawlError('STORE_UNAVAILABLE', where) : new PawlError('UNKNOWN_RESULT', where)
  }
  const suffer = async <R>(fault: Fault, call: Call, next: () => Promise<R>): Promise<R> => {
    switch (fault.fault) {
      case 'crash-before':
        return die()
      case 'crash-after':
        await next()
        return die()
      case 'reply-lost':
        await next()
        mustLive()
        throw unknown(call)
      case 'refused':
        throw unknown(call)
      case 'late':
        host.after(fault.calls, () => {
          next().catch(() => host.note(`the late ${call.port}.${call.method} is refused`, actor))
        })
        throw unknown(call)
      case 'repeated': {
        const first = await next()
        const second = await next().catch((error: unknown) =>
          fault.answer === 'first' ? first : Promise.reject(error),
        )
        return fault.answer === 'first' ? first : second
      }
      case 'zombie':
        return stalled(call, fault.calls, next)
      case 'timeout': {
        const error = new Error('the step took too long')
        error.name = 'States.Timeout'
        for (const listener of [...listeners]) listener(error)
        return stalled(call, fault.calls, next)
      }
    }
  }
  return {
    actor,
    get dead() {
      return dead
    },
    stuck,
    timedOut(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async pass(port, method, next) {
      mustLive()
      const call = { index: index++, actor, port, method }
      host.called(call)
      const fault = script(call)
      if (fault !== null) host.note(faultWords(fault, port, method), actor)
      const answer = await (fault === null ? next() : suffer(fault, call, next))
      mustLive()
      return answer
    },
    kill() {
      dead = true
      becomeStuck()
    },
  }
}

/** The port with each of its methods behind the gate. Streams pass once, when they begin. */
export function guarded<T extends object>(gate: Gate, port: string, target: T, sync: readonly string[] = []): T {
  return new Proxy(target, {
    get(object, property) {
      const member = Reflect.get(object, property, object) as unknown
      if (typeof member !== 'function' || typeof property !== 'string' || sync.includes(property)) return member
      const method = member as (...args: unknown[]) => unknown
      if (property === 'list' || property === 'read') return streamOrCall(gate, port, property, object, method)
      return (...args: unknown[]) => gate.pass(port, property, async () => method.apply(object, args))
    },
  })
}

function streamOrCall(
  gate: Gate,
  port: string,
  property: string,
  object: object,
  method: (...args: unknown[]) => unknown,
) {
  return (...args: unknown[]) => {
    const begun: unknown = property === 'read' && port !== 'log' ? null : method.apply(object, args)
    if (begun === null) return gate.pass(port, property, async () => method.apply(object, args))
    return (async function* () {
      const stream = await gate.pass(port, property, async () => begun as AsyncIterable<unknown>)
      for await (const item of stream) yield item
    })()
  }
}
