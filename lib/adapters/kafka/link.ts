/**
 * What the sink asks of a cluster connection: send a request to a broker, and look topics up.
 *
 * Kept this narrow so that the transaction code knows nothing of sockets, and tests can lose an answer.
 */
import type { WireRequest } from './wire.ts'

/** A broker by its id, or whichever fits. */
export type BrokerChoice = number | 'any' | 'controller'

export interface KafkaLink {
  /**
   * Sends one request and decodes its answer; requests to one broker keep their order. Throws
   * `BROKER_UNREACHABLE` when no connection could be made, `UNKNOWN_RESULT` when the answer was lost.
   */
  send<T>(broker: BrokerChoice, request: WireRequest<T>, timeoutMs?: number): Promise<T>
  /** Topics as the cluster sees them now, never from memory; a topic that does not exist is absent. */
  topics(names: readonly string[]): Promise<ReadonlyMap<string, TopicLayout>>
}

/** A topic as the cluster sees it. */
export interface TopicLayout {
  /** Changes when the topic is created again. */
  readonly topicId: string
  /** Broker id of the leader by partition; -1 while there is none. */
  readonly leaders: readonly number[]
}
