/**
 * Small ports: time, randomness, places to run, and telemetry.
 *
 * Nothing outside adapters reads a clock, makes a random number or prints.
 */
import type { ProgressEvent } from '../model/event.ts'

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number
  /** Resolves after `ms`, or as soon as `signal` aborts; it never rejects, the caller looks at its signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export interface Random {
  /** 128 random bits as 32 hex digits. */
  id(): string
}

/** Starts runs of the epoch machine, and tells whether one is gone. */
export interface Launcher {
  /** Starts run `sequence` of the pipeline. A name that was used before is `exists`, never an error. */
  start(run: {
    readonly pipeline: string
    readonly incarnation: string
    readonly sequence: number
  }): Promise<'started' | 'exists'>
  /** What is known of the run at `place`. `gone` only when it certainly will not write again by itself. */
  status(place: string): Promise<'running' | 'gone' | 'unknown'>
}

/** Runs one task somewhere. */
export interface Invoker {
  operate(input: unknown): Promise<unknown>
  close(): Promise<void>
}

export interface Telemetry {
  emit(event: ProgressEvent): void
}
