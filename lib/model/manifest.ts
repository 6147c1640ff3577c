/**
 * Plans and manifests: what an epoch will read, and what it became.
 *
 * Both are JSON objects in the store, created if absent, named by attempt. A manifest names the hash of its
 * parent, so the epochs form a chain. Offsets are text. Version 1 of each.
 */
import type { ObjectRef, RegisteredLane, SinkLane, SourceOffset, UnconfirmedOutput } from './head.ts'
import type { RangeText } from './offsets.ts'
import type { PipelineGuarantee } from './settings.ts'

/** Version of the plan as it is stored. */
export const planVersion = 1
/** Version of the manifest as it is stored. */
export const manifestVersion = 1

/** What an attempt will read and run, fixed before any work: the barrier of the epoch. */
export interface Plan {
  readonly version: number
  readonly pipeline: string
  readonly incarnation: string
  readonly epoch: number
  readonly attempt: string
  readonly run: string
  readonly generation: number
  readonly build: string
  /** Manifest of epoch − 1. */
  readonly parent: ObjectRef
  /** The clock of the epoch: what every operator sees as processing time. */
  readonly processingTimeMs: number
  readonly deadlineMs: number
  /** Sorted by source, partition; partitions without new offsets have start = end. */
  readonly ranges: readonly PlannedRange[]
  /** One task runs all stages. */
  readonly fused: boolean
  readonly shards: number
  /** Tasks a stage; `[1]` when fused. */
  readonly stageTasks: readonly number[]
  /** Records that are rejected instead of processed. */
  readonly convicted: readonly SourceOffset[]
  readonly lanes: readonly RegisteredLane[]
  /** Ranges that the logs lost and that a policy lets go. */
  readonly lost: readonly RangeText[]
  /** Refused rows that the epoch carries to the dead letters. Absent: none. */
  readonly refused?: CarriedRows
  /** Output of earlier epochs that at-most-once has let go. Absent: none. */
  readonly unconfirmed?: readonly UnconfirmedOutput[]
}

/** The offsets of one partition that an attempt reads. */
export interface PlannedRange extends RangeText {
  readonly topicId: string
  /** True when `end` was the end of the log when the plan was made: the partition is idle if it has no records. */
  readonly caughtUp: boolean
}

/** Where a source partition stands after an epoch. */
export interface PartitionProgress extends RangeText {
  readonly topicId: string
  /** Largest event time seen, ever; null before the first record. */
  readonly maxTimestampMs: number | null
  /** Processing time of the last epoch with records (or of the first epoch). */
  readonly activeAtMs: number
}

export interface Manifest {
  readonly version: number
  readonly pipeline: string
  readonly incarnation: string
  readonly epoch: number
  readonly attempt: string
  readonly run: string
  readonly generation: number
  readonly build: string
  /** Null only in the genesis manifest (epoch 0). */
  readonly parent: ObjectRef | null
  /** Hash of the genesis manifest, which base markers carry; null only in itself. */
  readonly genesis: string | null
  readonly processingTimeMs: number
  readonly progress: readonly PartitionProgress[]
  /** Null while no partition has a watermark. Never falls. */
  readonly watermarkMs: number | null
  readonly snapshots: readonly Snapshot[]
  readonly committables: readonly Committable[]
  /** For each registered lane, the last epoch in which it had output, as its sink's marker shows it. */
  readonly laneMarkers: readonly LaneMarker[]
  readonly counts: Counts
  /** What epochs of this build have cost so far; absent where nothing is known. No result depends on it. */
  readonly pace?: Pace
  /** Records that were rejected under `onError: 'skip'`; the rejected records themselves. */
  readonly rejected: ObjectRef | null
  /** Records that were rejected unseen, because each epoch that read them had died. */
  readonly convicted: readonly SourceOffset[]
  /** Records skipped by an explicit policy for lost offsets. */
  readonly lost: readonly RangeText[]
  /** Absent: exactly-once. */
  readonly guarantee?: PipelineGuarantee
  /** Rows that sinks had refused, carried to the dead letters by this epoch. Absent: none. */
  readonly refused?: CarriedRows
  /** Output of earlier epochs that at-most-once has let go. Absent: none. */
  readonly unconfirmed?: readonly UnconfirmedOutput[]
}

/** State of one operator in one shard. */
export interface Snapshot {
  readonly operator: string
  readonly stateVersion: number
  readonly stateKind: string
  /** Key groups `[from, to)`. */
  readonly keyGroups: readonly [from: number, to: number]
  /** A base, then its deltas in order. Empty state has no files. */
  readonly files: readonly SnapshotFile[]
}

/** One file of a snapshot: everything (`base`), or what changed since the file before (`delta`). */
export interface SnapshotFile extends ObjectRef {
  readonly file: 'base' | 'delta'
  readonly entries: number
}

/** The handle by which one lane's staged output of one epoch is promoted. */
export interface Committable {
  readonly sink: string
  readonly lane: number
  /** Resolved target, so that configuration cannot redirect it later. */
  readonly target: string
  readonly epoch: number
  /** What the sink's marker must be before: the last epoch in which the lane had output. */
  readonly prev: Marker
  /** In task order. */
  readonly parts: readonly StagedPart[]
  readonly rows: number
  readonly bytes: number
  /** At most once: the head says that the promotion is begun, and it is never tried again. Absent: until it succeeds. */
  readonly tries?: 'once'
}

/** Staged output of one invocation for one lane. */
export interface StagedPart {
  readonly lane: number
  readonly rows: number
  readonly bytes: number
  /** Objects of the store that this part consists of, in order; precommit checks that they exist. */
  readonly objects: readonly ObjectRef[]
  /** What else the sink needs to know; JSON of its own, versioned by the sink. */
  readonly handle: unknown
}

/** What a sink shows of the last epoch it took. */
export interface Marker {
  readonly incarnation: string
  /** 0 for the base marker. */
  readonly epoch: number
  /** SHA-256 of the manifest of `epoch`; of the genesis manifest for the base marker. */
  readonly hash: string
}

/** The marker that a lane shows after the epoch, whether or not the epoch had output for it. */
export interface LaneMarker {
  readonly sink: string
  readonly lane: number
  readonly epoch: number
  readonly hash: string
}

/** Microseconds of waiting for the tasks of an epoch, by offset; null where there was no such epoch. */
export interface Pace {
  /** All stages in one task. */
  readonly fusedUs: number | null
  /** Stage by stage, each as long as its slowest task. */
  readonly splitUs: number | null
}

/** What an epoch read, wrote and left out. */
export interface Counts {
  /** Records read from sources. */
  readonly in: number
  /** Rows staged, by sink id. */
  readonly out: Readonly<Record<string, number>>
  readonly late: number
  readonly rejected: number
}

/** Proof that an epoch is committed; only `epoch/` makes one, from what it read in the head. */
export interface CommitPermit {
  readonly incarnation: string
  readonly epoch: number
  readonly manifest: ObjectRef
  readonly [permitBrand]: true
}
/** Makes a permit impossible to write down: it has to be read from the head. */
export declare const permitBrand: unique symbol

/** Rows that a sink refused, as an epoch carries them: a JSON list of `RefusedRow`s by lane, in the store. */
export interface CarriedRows {
  readonly object: ObjectRef
  readonly rows: number
  /** Lanes that may hold more than one epoch carries. */
  readonly more: readonly SinkLane[]
}

/** A row that a sink refused, as it recorded it in the transaction that moved the marker. */
export interface RefusedRow {
  /** Of this recording, unlike any other: a sink that was restored records a row again under another id. */
  readonly id: string
  readonly incarnation: string
  /** The epoch whose promotion refused the row. */
  readonly epoch: number
  /** Position of the row in the lane's output of the epoch, from 0. */
  readonly row: number
  /** The sink's own code, e.g. an SQLSTATE. */
  readonly code: string
  readonly column: string | null
  readonly reason: string
  /** Base64, or null: the row as the sink had it; the beginning when `cutBytes` is not 0. */
  readonly key: string | null
  readonly value: string | null
  readonly cutBytes: number
}

/** Refused rows of one lane. */
export interface RefusedLane extends SinkLane {
  readonly rows: readonly RefusedRow[]
}

/** Where a refused row stands: equal in every dead letter of the same row. */
export type RefusedPlace = SinkLane & Pick<RefusedRow, 'incarnation' | 'epoch' | 'row' | 'code' | 'column'>

/** A record that was not processed, as it stands in dead letters and in the rejected file. */
export interface RejectedRecord {
  readonly source: string
  readonly topic: string
  readonly partition: number
  readonly offset: string
  readonly timestampMs: number
  /** Node that rejected it; the source's id for a decoding error. */
  readonly operator: string
  readonly error: { readonly name: string; readonly message: string }
  /** Base64, or null; the beginning when `cutBytes` is not 0. */
  readonly key: string | null
  readonly value: string | null
  /** Bytes of key and value beyond `limits.rejectedBytesMax`, which are left out. */
  readonly cutBytes: number
  /** For a row that a sink refused, whose `operator` is the sink; it belongs to no single record. */
  readonly refused?: RefusedPlace
}
