/**
 * What a doctor asks of the world around a place: services and brokers, their clocks, settings and rights.
 *
 * Obligations: everything only reads, and may be asked beside a running pipeline. What a service refuses or does not
 * answer is thrown as everywhere; what does not exist is null.
 */

/** The services of a deployment. A place on one machine has none. */
export interface Surroundings {
  /** The clocks of services, as the `Date` of an answer tells; to the second. */
  serverTimes(): Promise<readonly ServerTime[]>
  /** Kind of the executions, on which the document of their machine depends. */
  readonly workflow: 'standard' | 'express'
  /** The state machine's document as it is deployed; null when there is no such machine. */
  definition(): Promise<string | null>
  /** Mappings that ring the trigger. Null: its deployment has none. */
  mappings(): Promise<readonly MappingState[] | null>
  /** Function calls at once: of the account, and what no function has reserved of it. */
  concurrency(): Promise<{ readonly account: number; readonly unreserved: number }>
  /** Reads what the brokers are told to let us in. Null: nothing secret is needed. */
  readSecret: (() => Promise<unknown>) | null
}

/** What the clock of a service showed when ours showed `hereMs`. */
export interface ServerTime {
  readonly server: string
  readonly atMs: number
  readonly hereMs: number
}

/** A mapping as Lambda describes it. */
export interface MappingState {
  readonly topics: readonly string[]
  /** As in `Enabled`. */
  readonly state: string
  /** As in `OK`, or why it reads nothing; null when nothing is known. */
  readonly result: string | null
}

/** What a cluster tells of a topic to whoever may ask. */
export interface TopicReport {
  readonly topic: string
  readonly exists: boolean
  /** What the principal may do; null where the cluster does not tell. */
  readonly operations: ReadonlySet<TopicOperation> | null
  /** Settings; null where the principal may not ask. */
  readonly configs: ReadonlyMap<string, string | null> | null
}

/** Rights at a topic, by their names in ACLs. */
export type TopicOperation = 'Read' | 'Write' | 'Describe' | 'DescribeConfigs'
