/**
 * `to`: hands values to the stage writer of a sink.
 *
 * A writer throws what the serde throws before it keeps anything of the row; such a row is rejected at the sink's
 * id. What is not the row's fault (a full disk, a broken promise of ours) passes through.
 */
import { isPawlError } from '../../model/errors.ts'
import type { StageWriter } from '../../ports/sink.ts'
import type { Push, TaskParts } from './task-parts.ts'

/** A sink of one task, with how many rows it took. */
export class SinkOperator {
  readonly id: string
  rows = 0
  readonly push: Push

  constructor(id: string, writer: StageWriter, { context, rejections }: TaskParts) {
    this.id = id
    this.push = (value) => {
      try {
        writer.add(context.key, value, context.timestampMs, Math.max(0, context.partition))
      } catch (error) {
        if (isPawlError(error) && error.kind !== 'Invalid') throw error
        const tooLarge = isPawlError(error) && error.code === 'RECORD_TOO_LARGE'
        rejections.reject(tooLarge ? 'RECORD_TOO_LARGE' : 'ENCODE_FAILED', id, error)
        return
      }
      this.rows++
    }
  }
}
