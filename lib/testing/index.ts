/**
 * `pawl/testing`: a hostile world for your own pipelines and adapters.
 *
 * `simulate` runs a pipeline from a seed, `exhaust` puts every fault at every port call of a small run; both throw
 * `SIMULATION_FAILED` with the broken invariant, what happened, and how to see it again. The contracts are what the
 * adapters of Pawl are held to: run them on a sink, store, log or ledger of your own. No test runner is needed.
 */
export { type MemoryLog, type MemoryLogOptions, memoryLog } from '../adapters/memory/log.ts'
export type { RowRefusal } from '../adapters/memory/sink.ts'
export { type MemoryOptions, type MemorySinkSpec, memory } from '../adapters/memory/spec.ts'
export { type MemoryStore, memoryStore } from '../adapters/memory/store.ts'
export type { MemoryRow } from '../adapters/memory/table.ts'
export {
  type Contract,
  type ContractCase,
  type ContractPlace,
  contractCases,
  type Implementation,
  type Obligation,
} from './contracts/contract.ts'
export { ledgerContract } from './contracts/ledger.ts'
export { logContract } from './contracts/log.ts'
export type { LogControls, LogSubject } from './contracts/log-subject.ts'
export { sinkContract } from './contracts/sink.ts'
export { sinkFaultContract, sinkRefusalFaultContract } from './contracts/sink-faults.ts'
export { refusedValue, sinkRefusalContract } from './contracts/sink-refusals.ts'
export { type SinkSizeOptions, sinkSizeContract, sinkSizeContractOf } from './contracts/sink-size.ts'
export {
  contractLanes,
  contractRowSpec,
  type SinkControls,
  type SinkSubject,
  type VisibleRow,
} from './contracts/sink-subject.ts'
export { storeContract } from './contracts/store.ts'
export { type Exhausted, type ExhaustOptions, exhaust, type PlannedFault } from './exhaust.ts'
export { everyFault, type Fault } from './fault.ts'
export { type Simulated, type SimulateOptions, simulate } from './simulate.ts'
export { type InputRecord, record, type SimulationInput } from './workload.ts'
