/**
 * Late records of a window: counted, and led to the side output where there is one.
 */
import type { Push } from './task-parts.ts'

/** Counts what passes. */
export class LateOperator {
  records = 0
  readonly push: Push

  constructor(next: Push) {
    this.push = (value) => {
      this.records++
      next(value)
    }
  }
}
