/**
 * The limits that the design lives within, in one table.
 *
 * Sources: AWS service quotas (Step Functions, Lambda, DynamoDB) as published in November 2026; ours are marked.
 */
export const limits = Object.freeze({
  /** Step Functions: bytes of input or output of a state. */
  statePayloadBytesMax: 256 * 1024,
  /** Step Functions Standard: events an execution may have. */
  executionEventsMax: 25_000,
  /** Step Functions Express: the longest execution. */
  expressMs: 5 * 60_000,
  /** Step Functions: iterations of an inline Map at once. */
  mapConcurrencyMax: 40,
  /** Lambda: the longest invocation. */
  functionMs: 15 * 60_000,
  /** Lambda: the longest invocation by an event source mapping of Kafka. */
  mappedFunctionMs: 14 * 60_000,
  /** DynamoDB: bytes of an item. */
  itemBytesMax: 400 * 1024,
  /** Ours: events, without retries, after which a run hands over to a fresh execution. */
  runEventsMax: 8000,
  /** Ours: epochs before a run hands over. */
  runEpochsMax: 100,
  /** Ours: largest record that a source delivers. */
  recordBytesMax: 8 * 1024 * 1024,
  /** Ours: offsets an epoch may span. */
  epochSpanMax: 2_000_000,
  /** Ours: key groups of a pipeline. */
  keyGroups: 128,
  keyGroupsMax: 32_768,
  /** Ours: rejected records an epoch may keep under onError: skip. */
  rejectedPerEpochMax: 10_000,
  /** Ours: bytes of key and value that a rejected record keeps; Kafka takes 1 MiB a record by default. */
  rejectedBytesMax: 256 * 1024,
  /** Ours: bytes that the rejected records of one task may keep together. */
  rejectedPerTaskBytesMax: 64 * 1024 * 1024,
  /** Ours: rows that one promotion may refuse; more are taken for the table's fault. */
  refusedPerPromotionMax: 1000,
  /** Ours: refused rows, and bytes of them, that one epoch carries to the dead letters. */
  refusedPerEpochMax: 1000,
  refusedPerEpochBytesMax: 4 * 1024 * 1024,
  /** Ours: characters of a user's error message that are kept; the head must stay below an item's size. */
  errorCharsMax: 2000,
  /** Ours: failure times kept in the head. */
  failureTimesMax: 100,
})
