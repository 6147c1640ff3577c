/**
 * The public API: what a pipeline file imports from `pawl`, and nothing else.
 *
 * Importing it opens no client and loads no vendor's library.
 */

export { type FilesOptions, files } from './adapters/file/files.ts'
export {
  type WriteAheadAnswer,
  type WriteAheadContext,
  type WriteAheadOptions,
  type WriteAheadRefusal,
  type WriteAheadRow,
  writeAhead,
} from './adapters/writeahead/sink.ts'
export type { ErrorCode, ErrorKind } from './model/errors.ts'
export { isPawlError, PawlError } from './model/errors.ts'
export { type FieldTypes, type FieldValues, jsonFields } from './model/json-fields.ts'
export type { RefusedPlace, RefusedRow, RejectedRecord } from './model/manifest.ts'
export type { Header } from './model/records.ts'
export { bytes, json, nullable, type Serde, text } from './model/serde.ts'
export type {
  CheckpointSettings,
  EpochSettings,
  PipelineGuarantee,
  RestartStrategy,
  RetainSettings,
  Settings,
} from './model/settings.ts'
export type { Topology, TopologyNode } from './model/topology.ts'
export type { StartPosition } from './ports/log.ts'
export type { Guarantee, RejectPolicy, Sink, SinkLimits, StageContext, StageWriter } from './ports/sink.ts'
export type { ClusterSpec, CustomSinkSpec, OpenContext, SinkSpec, SourceSpec, TopicSpec } from './ports/spec.ts'
export { compile } from './stream/compile.ts'
export type { Compiled } from './stream/compiled.ts'
export type {
  AggregateSpec,
  Context,
  EmitOptions,
  KeyedStream,
  Mapper,
  ResultContext,
  Stream,
  TumblingWindow,
  WindowAggregateSpec,
  WindowContext,
  WindowedStream,
  WindowResult,
} from './stream/language.ts'
export {
  type DeadLetter,
  deadLetter,
  type FromOptions,
  type Pipeline,
  type PipelineOptions,
  pipeline,
} from './stream/pipeline.ts'
export { type RawBytes, type TopicOptions, topic } from './stream/topic.ts'
export { tumbling } from './stream/window.ts'
