/**
 * `pawl/sink-kit`: what a sink of your own is made of, beside its database. See docs/adapters.md.
 *
 * Staging through the store, the choice of lanes, and markers. `pawl/testing` has the contract that proves it.
 */
export { laneOf } from './adapters/shared/lanes.ts'
export { markerAfter, sameMarker } from './adapters/shared/markers.ts'
export { type JsonRow, jsonRows, jsonWriter } from './adapters/shared/staged-lines.ts'
export type { CommitPermit, Committable, Marker, StagedPart } from './model/manifest.ts'
export type { PromoteResult, Sink, SinkLimits, StageContext, StageWriter } from './ports/sink.ts'
export type { CustomSinkSpec, OpenContext } from './ports/spec.ts'
export type { Store, StoredObject } from './ports/store.ts'
