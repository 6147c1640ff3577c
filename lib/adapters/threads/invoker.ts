/**
 * Tasks in worker threads: one large epoch on all cores of one machine.
 *
 * Task n goes to thread n modulo threads, so that the state of a shard stays warm in one thread. A thread that dies
 * fails its tasks with `WORKER_DIED` and is replaced at the next call; what it had written is garbage like that of
 * any attempt. What a thread runs is the composition root's choice.
 */
import { Worker } from 'node:worker_threads'
import { type ErrorCode, errorRegistry, PawlError } from '../../model/errors.ts'
import type { TaskInput } from '../../model/steps.ts'
import type { Invoker } from '../../ports/system.ts'

/** What threads run, and how many. */
export interface ThreadOptions {
  readonly threads: number
  /** Module that answers calls; see `lib/places/worker.ts`. */
  readonly module: URL
  /** Cloned into each thread. */
  readonly setup: unknown
}

/** A call to a thread. */
export interface ThreadCall {
  readonly call: number
  readonly input: TaskInput
}

/** Its answer: the output, or the error as plain data. */
export type ThreadAnswer =
  | { readonly call: number; readonly output: unknown }
  | {
      readonly call: number
      readonly error: {
        readonly code: string | null
        readonly message: string
        readonly details: Record<string, string | number | boolean | null>
      }
    }

interface Thread {
  readonly worker: Worker
  readonly pending: Map<number, { resolve: (output: unknown) => void; reject: (error: unknown) => void }>
}

/** Threads start with their first task. */
export function threadInvoker(options: ThreadOptions): Invoker {
  const threads = new Map<number, Thread>()
  let calls = 0
  const threadOf = (slot: number): Thread => {
    const found = threads.get(slot)
    if (found) return found
    const thread = startThread(options, () => threads.delete(slot))
    threads.set(slot, thread)
    return thread
  }
  return {
    operate(input) {
      const { task } = input as TaskInput
      const { worker, pending } = threadOf(task % options.threads)
      const call = calls++
      return new Promise((resolve, reject) => {
        pending.set(call, { resolve, reject })
        worker.postMessage({ call, input })
      })
    },
    async close() {
      await Promise.all([...threads.values()].map(({ worker }) => worker.terminate()))
    },
  }
}

function startThread({ module, setup }: ThreadOptions, gone: () => void): Thread {
  const worker = new Worker(module, { workerData: setup })
  const pending: Thread['pending'] = new Map()
  let cause: unknown
  worker.on('error', (error) => {
    cause = error
  })
  worker.on('exit', (code) => {
    gone()
    for (const { reject } of pending.values())
      reject(new PawlError('WORKER_DIED', `exit code ${code}`, { exitCode: code }, cause))
  })
  worker.on('message', (answer: ThreadAnswer) => {
    const waiting = pending.get(answer.call)
    pending.delete(answer.call)
    if ('output' in answer) waiting?.resolve(answer.output)
    else waiting?.reject(errorOf(answer.error))
  })
  worker.unref()
  return { worker, pending }
}

/** The error as it was thrown in the thread; its message already holds code and next step. */
function errorOf({ code, message, details }: Extract<ThreadAnswer, { error: unknown }>['error']): PawlError {
  const known: ErrorCode = code !== null && code in errorRegistry ? (code as ErrorCode) : 'ASSERTION_FAILED'
  const error = new PawlError(known, message, details)
  if (known === code) error.message = message
  return error
}
