/**
 * How far the pipeline has come, told from what its workers say before they die.
 *
 * A worker may be killed between a commit and its word about it. So an epoch counts as committed as soon as anybody
 * speaks of the next one: the engine opens no epoch before the one before is committed and visible.
 */

/** The events of `pawl run --json` that the demo listens to. */
export type WorkerEvent =
  | { readonly event: 'opened'; readonly epoch: number; readonly span: number }
  | { readonly event: 'committed' | 'promoted' | 'finalized'; readonly epoch: number }
  | { readonly event: 'aborted' | 'parked'; readonly code: string; readonly message: string }

/** Whether it is one of the four steps in the life of an epoch. */
export function isOfEpoch(event: WorkerEvent): event is Extract<WorkerEvent, { readonly epoch: number }> {
  return ['opened', 'committed', 'promoted', 'finalized'].includes(event.event)
}

/** Where a worker is in the life of an epoch. */
export type Moment = 'starting' | 'working' | 'committed' | 'visible'

/** What has been done so far, whoever did it. */
export class Progress {
  /** The worker at hand. */
  moment: Moment = 'starting'
  /** The epoch that was last spoken of. */
  epoch = 0
  attempts = 0
  committed = 0
  /** Lines in committed epochs. */
  lines = 0
  #span = 0

  /** Attempts that were opened and will never be committed. */
  get died(): number {
    return this.attempts - this.committed - (this.moment === 'working' ? 1 : 0)
  }

  /** A new worker, of which nothing is known yet. */
  restart(): void {
    this.moment = 'starting'
  }

  /** Takes what a worker says. */
  note(event: WorkerEvent): void {
    if (!isOfEpoch(event)) return
    this.epoch = event.epoch
    if (event.event === 'opened') {
      this.#commit(event.epoch - 1)
      this.#span = event.span
      this.attempts++
      this.moment = 'working'
    } else {
      this.#commit(event.epoch)
      this.moment = event.event === 'committed' ? 'committed' : 'visible'
    }
  }

  #commit(epoch: number): void {
    if (epoch <= this.committed) return
    this.committed = epoch
    this.lines += this.#span
    this.#span = 0
  }
}
