/**
 * Names of objects in the store: every one is made here.
 *
 * Whatever an attempt writes lies under the attempt, and whatever an invocation writes under a name of its own, so
 * that no two invocations ever share one. Ids are random; readers learn names from heads and manifests only.
 */

/** Everything of one incarnation; what `collect` lists. */
export function incarnationPrefix(pipeline: string, incarnation: string): string {
  return `pipelines/${pipeline}/${incarnation}/`
}

/** Everything of one attempt; what `abort` deletes. */
export function attemptPrefix(pipeline: string, incarnation: string, attempt: string): string {
  return `${incarnationPrefix(pipeline, incarnation)}attempts/${attempt}/`
}

/** The plan of an attempt. */
export function planName(pipeline: string, incarnation: string, attempt: string): string {
  return `${attemptPrefix(pipeline, incarnation, attempt)}plan`
}

/** Refused rows that an attempt carries. */
export function refusedName(pipeline: string, incarnation: string, attempt: string): string {
  return `${attemptPrefix(pipeline, incarnation, attempt)}refused`
}

/** Everything of one invocation of a step. */
export function invocationPrefix(pipeline: string, incarnation: string, attempt: string, invocation: string): string {
  return `${attemptPrefix(pipeline, incarnation, attempt)}${invocation}/`
}

/**
 * Markers of a sink that can keep none itself. Beside the incarnations, since a marker of another one must be seen, and
 * since `collect` deletes what no root of its incarnation reaches.
 */
export function markersPrefix(pipeline: string, sink: string): string {
  return `markers/${pipeline}/${sink}/`
}

/** Sorts and compares lanes. */
export function laneName(sink: string, lane: number): string {
  return `${sink}/${lane}`
}
