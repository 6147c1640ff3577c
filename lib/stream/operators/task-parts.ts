/**
 * What operators of one task share, and the shape they have: push functions, built once, called per value.
 *
 * A push function takes the value; key, timestamp and coordinates are in the context. Only the user's function is
 * guarded, never what is downstream, so that an error is charged to the operator that made it.
 */
import type { TaskContext } from '../context.ts'
import type { Rejections } from '../rejection.ts'

/** Takes one value further down the chain. */
export type Push = (value: unknown) => void

/** What every operator of a task is given. */
export interface TaskParts {
  readonly context: TaskContext
  readonly rejections: Rejections
}

/** A keyed operator of one task: takes values, and emits at the end of the epoch. */
export interface KeyedOperator {
  /** The key is in the context. */
  readonly push: Push
  finish(watermarkMs: number | null): void
}

/** One push function for any number of outputs. */
export function fanOut(outputs: readonly Push[]): Push {
  switch (outputs.length) {
    case 0:
      return () => {}
    case 1:
      return outputs[0]
    case 2: {
      const [first, second] = outputs
      return (value) => {
        first(value)
        second(value)
      }
    }
    default:
      return (value) => {
        for (const output of outputs) output(value)
      }
  }
}

/** True for a promise and anything that passes for one. */
export function isThenable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}

/** What an operator that returned a promise is rejected with. */
export function promiseError(): TypeError {
  return new TypeError('it returned a promise: functions of a pipeline are synchronous')
}
