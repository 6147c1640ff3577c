/**
 * Small ports: time, randomness, places to run, and telemetry.
 *
 * Nothing outside adapters reads a clock, makes a random number or prints.
 */
import type { ProgressEvent } from '../model/event.ts'

/** The time, and waiting for it to pass. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number
  /** Resolves after `ms`, or as soon as `signal` aborts; it never rejects, the caller looks at its signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Ids that nobody else makes. */
export interface Random {
  /** 128 random bits as 32 hex digits. */
  id(): string
}

/** Starts runs of the epoch machine, and tells whether one is gone. */
export interface Launcher {
  /**
   * Starts run `sequence` of the pipeline, under a name made of the sequence and the wake counter of the ring that
   * starts it: a name is never used again. A name that was used before is `exists`, never an error.
   */
  start(run: RunStart): Promise<'started' | 'exists'>
  /** True where nothing can be told of a run: `status` is always `unknown`, and a run may start twice. */
  readonly blind?: boolean
  /** What is known of the run at `place`. `gone` only when it certainly will not write again by itself. */
  status(place: string): Promise<'running' | 'gone' | 'unknown'>
  /** Ends the run at `place` from outside, where that can be done. False when there was nothing to end. */
  stop?(place: string, why: string): Promise<boolean>
}

/** The run to start. */
export interface RunStart {
  readonly pipeline: string
  readonly sequence: number
  readonly wakes: number
  /** A person asked to go on although the pipeline is parked. */
  readonly resume?: boolean
}

/** Runs one task somewhere. */
export interface Invoker {
  operate(input: unknown): Promise<unknown>
  close(): Promise<void>
}

/** Takes what a pipeline tells about itself. Never throws, never waits. */
export interface Telemetry {
  emit(event: ProgressEvent): void
}
