/**
 * The user's pipeline file, put in place of this name when the functions are bundled.
 */
declare module 'pawl:pipeline' {
  /** What the file exports by default: a stream with its sinks. */
  const pipeline: unknown
  export default pipeline
}
