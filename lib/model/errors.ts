/**
 * The one thrown class, and the registry of everything that can go wrong.
 *
 * Expected outcomes are return values; what is thrown is a `PawlError` with a code from the registry below.
 * The kind says what the *caller* does; the action says what the *person* does. `docs/errors.md` is generated
 * from the registry, so a code, its kind and its next step are written once. Step Functions matches errors by
 * name, therefore `error.name` is the kind.
 */

/**
 * - `Retryable` transient or unknown: repeat, reading back first.
 * - `Fenced` somebody else owns the pipeline now: stop quietly, delete nothing.
 * - `Invalid` code, configuration or input must change.
 * - `Corrupt` what is stored contradicts itself: stop the pipeline.
 * - `Bug` a broken promise inside Pawl.
 */
export type ErrorKind = 'Retryable' | 'Fenced' | 'Invalid' | 'Corrupt' | 'Bug'

interface Registered {
  readonly kind: ErrorKind
  /** What happened, in one clause; the thing at fault is added by the thrower. */
  readonly message: string
  /** What the person does next. */
  readonly action: string
}

const registered = <K extends string>(codes: Record<K, readonly [ErrorKind, string, string]>) =>
  Object.freeze(
    Object.fromEntries(
      Object.entries<readonly [ErrorKind, string, string]>(codes).map(([code, [kind, message, action]]) => [
        code,
        Object.freeze({ kind, message, action }),
      ]),
    ),
  ) as Readonly<Record<K, Registered>>

/** Every code, sorted. A test holds the order, and that each code is thrown somewhere. */
export const errorRegistry = registered({
  ASSERTION_FAILED: [
    'Bug',
    'a promise inside Pawl was broken',
    'report it with the message and the output of `pawl verify`',
  ],
  AUTHENTICATION_FAILED: [
    'Invalid',
    'the server refused the credentials',
    'check user, password, mechanism and certificates',
  ],
  AUTHORIZATION_FAILED: [
    'Invalid',
    'the server does not allow the operation',
    'grant the principal what is named; docs/operations.md lists all permissions',
  ],
  AWS_ACCESS_DENIED: [
    'Invalid',
    'AWS does not allow the call',
    'grant the role the action that is named; without s3:ListBucket a missing object looks like this too',
  ],
  AWS_RESOURCE_MISSING: [
    'Invalid',
    'a bucket, table or state machine does not exist',
    'check its name, the region and the account, or deploy again',
  ],
  BATCH_DAMAGED: [
    'Corrupt',
    'a record batch does not match its checksum or its length',
    'read the partition with the Kafka tools; restore the topic or skip the range by an explicit policy',
  ],
  BATCH_FORMAT_UNKNOWN: [
    'Invalid',
    'a record batch is not of format version 2',
    'rewrite the topic with producers of Kafka 0.11 or newer',
  ],
  BROKER_TOO_OLD: [
    'Invalid',
    'the broker does not speak a version of the protocol that Pawl needs',
    'upgrade the brokers to Kafka 3.1 or newer',
  ],
  BROKER_UNREACHABLE: [
    'Retryable',
    'no broker answered',
    'check the bootstrap addresses and that the broker runs; Pawl tries again by itself',
  ],
  BUILD_CHANGED: [
    'Retryable',
    'the task runs another build than its plan',
    'nothing: the epoch is planned again with one build',
  ],
  CHAIN_BROKEN: [
    'Corrupt',
    'the committed epochs contradict each other',
    'restore ledger and store from one backup; report it with the output of `pawl show`',
  ],
  CODEC_MISSING: [
    'Invalid',
    'a record batch is compressed with a codec whose library is not installed',
    'install the named package beside pawl',
  ],
  CODEC_UNKNOWN: [
    'Invalid',
    'a record batch names a compression codec that does not exist',
    'find the producer of this topic and its compression.type',
  ],
  COMMAND_INVALID: ['Invalid', 'the command line is not understood', 'see `pawl --help`'],
  CONTROL_TOPIC_INVALID: [
    'Invalid',
    'the control topic is not compacted or has too few partitions',
    'set cleanup.policy=compact or recreate it under another name',
  ],
  DEAD_LETTERS_STRANDED: [
    'Invalid',
    'a sink holds rows that it refused, and the pipeline has no sink for dead letters',
    'set onError to deadLetter(id, sink) until they are carried; `pawl status` names the lanes that hold some',
  ],
  DECODE_FAILED: [
    'Invalid',
    'a record does not decode',
    'mend the producer, or choose onError: skip or a dead-letter output',
  ],
  DELTA_LOG_DAMAGED: [
    'Corrupt',
    'the log of a Delta table has a hole or is not readable',
    'restore the folder _delta_log of the table, and run again',
  ],
  DEPLOYMENT_INVALID: [
    'Invalid',
    'the deployment cannot work as it is described',
    'mend each mistake that is listed; nothing was deployed',
  ],
  DISK_FULL: ['Retryable', 'the disk of the store is full', 'free space; Pawl goes on by itself'],
  ENCODE_FAILED: [
    'Invalid',
    'a value does not encode',
    'mend the operator that made it, or choose onError: skip or a dead-letter output before a sink',
  ],
  EPOCH_ABORTED: [
    'Retryable',
    'a person aborted the attempt',
    'nothing: the next run plans the epoch again; `pawl pause` first keeps it from doing so',
  ],
  EPOCH_CRASHED: [
    'Retryable',
    'the process that ran the epoch died without a word',
    'nothing: the epoch is planned again, smaller if it dies again',
  ],
  EPOCH_NOT_FOUND: ['Invalid', 'no such epoch is retained', 'list the retained epochs with `pawl epochs`'],
  EPOCH_TIMEOUT: [
    'Retryable',
    'the epoch took longer than the checkpoint timeout',
    'nothing: the next attempt is half as large; raise checkpoint.timeoutMs if it stays',
  ],
  EPOCH_TOO_LARGE: [
    'Retryable',
    'the staged output exceeds what promote can do within its limits',
    'nothing: the next attempt is half as large',
  ],
  FENCED: ['Fenced', 'another run owns the pipeline', 'nothing: the other run goes on'],
  FILE_CHANGED: [
    'Corrupt',
    'a visible file is not what its epoch committed',
    'restore the file from a backup, or tell its readers',
  ],
  FILE_FOREIGN: [
    'Corrupt',
    'a file that Pawl did not write has the name of an epoch',
    'move it away; the pipeline goes on',
  ],
  FUNCTION_FAILED: [
    'Invalid',
    'a function of the deployment threw',
    'see its log group; deploy again if its build and the command differ',
  ],
  FUNCTION_UNAVAILABLE: [
    'Retryable',
    'AWS could not run a function',
    'nothing: the epoch is planned again; look at the quotas of Lambda if it stays',
  ],
  GROUP_IN_USE: [
    'Invalid',
    'the consumer group has members of its own',
    'choose a group for the pipeline that no consumer uses',
  ],
  HEAD_TOO_LARGE: [
    'Invalid',
    'the head of the pipeline exceeds what the ledger holds in one item',
    'drop savepoints, or use fewer lanes',
  ],
  HISTORY_MISSING: [
    'Corrupt',
    'the ledger lacks a committed epoch',
    'restore the ledger from its newest backup; run `pawl verify`',
  ],
  INTAKE_CONFLICT: [
    'Corrupt',
    'two records claim one offset of a topic',
    'see whether the topic was deleted and created again, or something but the mapping invokes the trigger; then start under a new pipeline id',
  ],
  INTAKE_EVENT_INVALID: [
    'Invalid',
    'an event of the mapping is not understood',
    'invoke the trigger with events of an event source mapping only; an offset beyond 2^53 needs intake: brokers',
  ],
  INTAKE_GAP: [
    'Retryable',
    'offsets are missing that no event brought, and the broker could not be asked',
    'nothing is skipped: let the function recover reach the brokers; it reads what is missing, holes are noted as such',
  ],
  INTAKE_UNDESCRIBED: [
    'Retryable',
    'the broker was not asked yet where the topic begins',
    'wait for the next minute; if it stays so, see why the function recover does not reach the brokers',
  ],
  INTAKE_UNVERIFIED: [
    'Retryable',
    'an event brought offsets from before what is kept, as after a topic was created again',
    'wait for the next minute, in which the function recover asks the broker; if it stays so, see why it does not reach the brokers',
  ],
  LABEL_FORGOTTEN: [
    'Corrupt',
    'Doris no longer knows whether a load was committed',
    'look in the table for the rows of the epoch (`pawl show EPOCH`); delete those that are there, then set onForgotten: append-again for one run; keep labels longer (streaming_label_keep_max_second, label_num_threshold)',
  ],
  LAUNCHER_UNAVAILABLE: [
    'Retryable',
    'the service that runs the state machine does not answer',
    'nothing: Pawl tries again by itself, and the schedule rings again',
  ],
  LEDGER_BUSY: [
    'Retryable',
    'the ledger is locked by another process',
    'nothing: Pawl tries again; look for a stuck process if it stays',
  ],
  LEDGER_DAMAGED: ['Corrupt', 'the ledger file is not readable', 'restore it from a backup and run `pawl verify`'],
  LEDGER_REWOUND: [
    'Corrupt',
    'a sink shows an epoch that the ledger has not committed',
    'the ledger was restored to an older state: restore the newest one, or start a new incarnation',
  ],
  LEDGER_TOO_NEW: ['Invalid', 'the ledger was written by a newer Pawl', 'run at least that version'],
  LEDGER_UNAVAILABLE: [
    'Retryable',
    'the ledger does not answer',
    'check its file and directory; Pawl tries again by itself',
  ],
  LINEAGE_CHANGED: [
    'Invalid',
    'the pipeline file does not fit the state of its last epoch',
    'restore the ids at fault, or start under a new pipeline id',
  ],
  LOG_OFFSET_LOST: [
    'Corrupt',
    'the log no longer holds the offsets that come next',
    'restore the topic, or restart with an explicit policy for lost offsets',
  ],
  LOG_SEGMENT_DAMAGED: ['Corrupt', 'a segment of the log is damaged', 'restore the segment from a backup'],
  LOG_SHRUNK: [
    'Corrupt',
    'the log ends before the offset that was committed',
    'the topic was restored or truncated: restore it, or start a new incarnation',
  ],
  LOG_TOO_NEW: ['Invalid', 'the log was written by a newer Pawl', 'run at least that version'],
  LOG_UNAVAILABLE: ['Retryable', 'the log does not answer', 'nothing is lost: Pawl tries again by itself'],
  MANIFEST_DAMAGED: [
    'Corrupt',
    'a manifest does not match its hash',
    'restore the object from a backup and run `pawl verify`',
  ],
  MARKER_FOREIGN: [
    'Corrupt',
    'the sink carries the marker of another incarnation',
    'the pipeline was reset under its old name: see `pawl sinks list FILE`, then `pawl sinks adopt FILE` to go on after what the sink shows, or clear its rows and `pawl sinks reset FILE`, or use a new pipeline id',
  ],
  MARKER_MISSING: [
    'Corrupt',
    'the marker of a registered lane is missing',
    'the control topic or marker store was recreated: restore it, or `pawl sinks adopt FILE` if no row was lost, or clear the rows and start a new incarnation',
  ],
  MARKER_UNKNOWN: [
    'Corrupt',
    'the marker of the sink is not in the committed chain',
    'somebody else writes to this sink; run `pawl verify`',
  ],
  OBJECT_DAMAGED: [
    'Corrupt',
    'a stored object does not match its checksum',
    'restore the object from a backup and run `pawl verify`',
  ],
  OBJECT_MISSING: [
    'Corrupt',
    'a committed epoch refers to an object that is not in the store',
    'restore the object from a backup and run `pawl verify`',
  ],
  OPERATOR_FAILED: [
    'Invalid',
    'an operator threw',
    'mend the operator, or choose onError: skip or a dead-letter output',
  ],
  PACKAGE_MISSING: [
    'Invalid',
    'a package that this feature needs is not installed',
    'install the named package beside pawl',
  ],
  PIPELINE_FILE_INVALID: [
    'Invalid',
    'the file does not export a pipeline',
    'end it with `export default pipeline(...)…to(...)`',
  ],
  PIPELINE_INVALID: ['Invalid', 'the pipeline has mistakes', 'mend each mistake that is listed'],
  PIPELINE_NOT_FOUND: ['Invalid', 'the ledger knows no such pipeline', 'check the id and the directory'],
  PIPELINE_PARKED: [
    'Invalid',
    'the pipeline is parked',
    'mend the reason and run again, with --resume when the pipeline file is the same',
  ],
  PIPELINE_PAUSED: ['Invalid', 'a person has paused the pipeline', 'lift it with `pawl resume`'],
  RECORD_TOO_LARGE: [
    'Invalid',
    'a record exceeds the size limit',
    'raise the limit at both ends, or choose onError: skip or a dead-letter output',
  ],
  ROWS_REFUSED: [
    'Invalid',
    'the sink refuses rows of a committed epoch',
    'mend the target (its types, constraints or limits), and run again',
  ],
  SECRET_INVALID: [
    'Invalid',
    'the secret holds no user and password',
    'store JSON with "username" and "password" in it, as Amazon MSK wants it',
  ],
  SHUFFLE_DAMAGED: [
    'Retryable',
    'a shuffle segment does not match its checksum',
    'nothing: the epoch is planned again',
  ],
  SIMULATION_FAILED: ['Bug', 'the simulation broke an invariant', 'run the printed seed again and read its trace'],
  SINK_MISSING: [
    'Invalid',
    'the pipeline file lacks a sink that has unpromoted output',
    'put the sink back until its output is promoted',
  ],
  SINK_ROLLED_BACK: [
    'Corrupt',
    'the sink lost epochs that are no longer retained',
    'restore a newer backup of the sink, or rebuild it from the input',
  ],
  SINK_SCHEMA_INVALID: [
    'Invalid',
    'the target of the sink does not fit its rows',
    'mend the table, index or key that is named, and run again',
  ],
  SINK_UNAVAILABLE: [
    'Retryable',
    'the sink does not answer',
    'nothing is lost: promotion goes on when the sink is back',
  ],
  SNAPSHOT_DAMAGED: [
    'Corrupt',
    'a state snapshot does not match its checksum',
    'restore the object from a backup and run `pawl verify`',
  ],
  START_POSITION_INVALID: [
    'Invalid',
    'the start position cannot be resolved',
    'name offsets that the log holds, or another position',
  ],
  STATE_TOO_LARGE: [
    'Invalid',
    'an operator holds more keys in one shard than fit',
    'run the pipeline with more shards',
  ],
  STATE_VERSION_NEWER: [
    'Invalid',
    'the state was written by a newer version of its operator',
    'deploy at least that version',
  ],
  STEP_INPUT_INVALID: ['Bug', 'a step got an input that it cannot read', 'report it with the message'],
  STORE_UNAVAILABLE: ['Retryable', 'the store does not answer', 'nothing: Pawl tries again by itself'],
  TASK_COVERAGE_BROKEN: ['Bug', 'the task results do not cover the plan', 'report it with the output of `pawl show`'],
  TOPIC_MISSING: ['Invalid', 'the topic does not exist', 'create it, or mend its name'],
  TOPIC_RECREATED: [
    'Corrupt',
    'the topic was deleted and created again',
    'start under a new pipeline id, or restore the topic',
  ],
  TRANSACTION_FENCED: [
    'Fenced',
    'another producer took over the transactional id',
    'nothing: the head decides who goes on',
  ],
  TRANSACTION_TIMEOUT_INVALID: [
    'Invalid',
    'the transaction timeout is longer than the broker allows',
    "lower transactionTimeoutMs of the cluster, or raise the broker's transaction.max.timeout.ms",
  ],
  TRANSACTION_TORN: [
    'Corrupt',
    'Kafka committed a transaction in some partitions and aborted it in others',
    'see which rows of the next epoch (`pawl show EPOCH`) the output topics hold; to promote it again, whole, `pawl sinks reset FILE`, then `pawl sinks adopt FILE`',
  ],
  UNKNOWN_RESULT: ['Retryable', 'the answer to a write was lost', 'nothing: the result is read back'],
  WAIT_TIMED_OUT: [
    'Retryable',
    'what the command waited for has not happened yet',
    'look with `pawl status`; the wish stays, so waiting again is safe',
  ],
  WORKER_DIED: ['Retryable', 'a worker thread died', 'nothing: the epoch is planned again, smaller if it dies again'],
  WRITE_ANSWER_INVALID: [
    'Invalid',
    'the function of a write-ahead sink says of rows that they are refused, and not which ones',
    'mend what write resolves with, and run again, with --resume when the pipeline file is the same',
  ],
})

/** A code of the registry. */
export type ErrorCode = keyof typeof errorRegistry

/** Details that travel with an error; offsets as decimal strings. Never holds a secret. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null>>

/** Everything that Pawl throws. `name` is the kind, so that Step Functions can match it. */
export class PawlError extends Error {
  readonly code: ErrorCode
  readonly kind: ErrorKind
  readonly details: ErrorDetails

  constructor(code: ErrorCode, fault: string, details: ErrorDetails = {}, cause?: unknown) {
    const { kind, message, action } = errorRegistry[code]
    super(`${code}: ${message}: ${fault}. Next: ${action}.`, cause === undefined ? undefined : { cause })
    this.code = code
    this.kind = kind
    this.details = details
    this.name = kind
  }
}

/** The thing at fault as the thrower named it: the message without what the registry says. */
export function faultOf({ code, message }: PawlError): string {
  const start = `${code}: ${errorRegistry[code].message}: `
  const end = `. Next: ${errorRegistry[code].action}.`
  return message.startsWith(start) && message.endsWith(end) ? message.slice(start.length, -end.length) : message
}

/** True when `error` is a `PawlError`, from whichever copy of the package. */
export function isPawlError(error: unknown): error is PawlError {
  return error instanceof Error && 'code' in error && 'kind' in error && (error as PawlError).code in errorRegistry
}

/** The kind of any thrown thing; what is not ours counts as a bug. */
export function kindOf(error: unknown): ErrorKind {
  return isPawlError(error) ? error.kind : 'Bug'
}
