/**
 * One Kafka transaction of one transactional id, from taking the id over to the end.
 *
 * Taking over (InitProducerId) fences whoever held the id and aborts what it left open; sequences start at 0. No
 * request is repeated whose effect could double: only answers that say "not now" are, and never a lost one. A lost
 * answer to Produce or EndTxn is `UNKNOWN_RESULT`; what became of it shows in the marker after the next take-over.
 */
import { faultOf, isPawlError, PawlError } from '../../model/errors.ts'
import { patchProducer } from '../../model/record-batch.ts'
import { isCoordinatorRetry, kafkaCode, kafkaError } from './codes.ts'
import type { KafkaLink } from './link.ts'
import { patience } from './patience.ts'
import { refusedRowKey } from './refused.ts'
import type { ReadyBatch } from './staged.ts'
import {
  addPartitionsToTxn,
  describeTransaction,
  endTxn,
  findCoordinator,
  initProducerId,
  type OutgoingBatch,
  type PartitionAnswer,
  type Producer,
  produce,
  type TopicPartitions,
  type TransactionAnswer,
} from './transaction-requests.ts'
import type { WireRequest } from './wire.ts'

/** Bytes of one Produce request; brokers take up to 100 MB (`socket.request.max.bytes`). */
const requestBytesMax = 8 * 1024 * 1024
/** Produce requests under way to one broker; the broker remembers the last five batches of a producer. */
const requestsUnderWay = 3

/** Bounds of a transaction and of waiting for it. */
export interface TransactionOptions {
  /** Where the coordinator of the id was found last; kept from one take-over to the next. */
  readonly coordinator: { node: number | null }
  /** After which the broker aborts the transaction by itself (`transaction.timeout.ms`). */
  readonly timeoutMs: number
  /** How long to put up with a coordinator that says "not now". */
  readonly patienceMs: number
}

/** Leader of each partition, by topic. */
export type Leaders = ReadonlyMap<string, readonly number[]>

export interface Transaction {
  /** Opens the transaction on these partitions. */
  addPartitions(targets: readonly TopicPartitions[]): Promise<void>
  /** Names the producer in the batches, in place, and sends them; the order within a partition is kept. */
  send(batches: readonly ReadyBatch[], leaders: Leaders): Promise<void>
  commit(): Promise<void>
  /** Gives up what was sent. */
  abort(): Promise<void>
}

/**
 * Sees to the last transaction of an id while its coordinator still remembers it, in the name of who held the id then.
 * True when something was done, so that the coordinator is to be asked again.
 */
export type Mend = (last: TransactionAnswer, transaction: Transaction) => Promise<boolean>

/**
 * Takes the transactional id over. When it returns, every earlier transaction of the id has ended and its markers
 * are written. Throws `TRANSACTION_TIMEOUT_INVALID`, `SINK_UNAVAILABLE`, `AUTHORIZATION_FAILED`.
 *
 * Taking over makes the coordinator forget how the last transaction ended, and aborts one that is open. So it is asked
 * before each try, also when another broker has become the coordinator.
 */
export async function takeOver(
  link: KafkaLink,
  id: string,
  options: TransactionOptions,
  mend: Mend = async () => false,
): Promise<Transaction> {
  const { timeoutMs, patienceMs, coordinator } = options
  const ask = coordinated(link, id, options)
  const heldBy = ({ producerId, epoch }: Pick<Producer, 'producerId' | 'epoch'>) =>
    transactionOf(link, ask, { transactionalId: id, producerId, epoch }, timeoutMs)
  for (const patient = patience(patienceMs); ; ) {
    const last = await ask(describeTransaction(id))
    if (last.state.startsWith('Prepare') || (last.error === kafkaCode.none && (await mend(last, heldBy(last))))) {
      if (await patient.wait()) continue
      throw new PawlError('SINK_UNAVAILABLE', `the last transaction of ${id} does not come to its end`)
    }
    const { error, ...producer } = await ask(initProducerId(id, timeoutMs), () => kafkaCode.none)
    if (error === kafkaCode.none) return heldBy(producer)
    if (!isCoordinatorRetry(error) || !(await patient.wait()))
      throw kafkaError(error, `take-over of ${id}`, null, { timeoutMs })
    if (error !== concurrentTransactions) coordinator.node = null
  }
}

const operationNotAttempted = 55
const concurrentTransactions = 51

function transactionOf(link: KafkaLink, ask: Coordinated, producer: Producer, timeoutMs: number): Transaction {
  return {
    async addPartitions(targets) {
      const answers = await ask(addPartitionsToTxn(producer, targets), (partitions) =>
        Math.max(0, ...partitions.map(({ error }) => (isCoordinatorRetry(error) ? error : 0))),
      )
      // OPERATION_NOT_ATTEMPTED stands beside the partition that is at fault.
      const failed = answers.filter(({ error }) => error !== kafkaCode.none)
      const fault = failed.find(({ error }) => error !== operationNotAttempted) ?? failed[0]
      if (fault) throw kafkaError(fault.error, `${producer.transactionalId} on ${fault.topic}/${fault.partition}`)
    },
    send: sender(link, producer, timeoutMs),
    commit: () => end(ask, producer, true),
    abort: () => end(ask, producer, false),
  }
}

async function end(ask: Coordinated, producer: Producer, commit: boolean): Promise<void> {
  const what = `${commit ? 'commit' : 'abort'} of ${producer.transactionalId}`
  const answer = await ask(endTxn(producer, commit)).catch((error: unknown) => {
    throw isPawlError(error) && error.kind === 'Retryable' ? new PawlError('UNKNOWN_RESULT', what, {}, error) : error
  })
  if (answer.error !== kafkaCode.none) throw kafkaError(answer.error, what)
}

type Coordinated = <T>(request: WireRequest<T>, errorOf?: (answer: T) => number) => Promise<T>

/** Sends to the coordinator of `id`, finding it (again) as needed, while it answers "not now". */
function coordinated(link: KafkaLink, id: string, { coordinator, patienceMs }: TransactionOptions): Coordinated {
  return async (request, errorOf = (answer) => (answer as { readonly error: number }).error) => {
    const patient = patience(patienceMs)
    for (;;) {
      const found = coordinator.node === null ? await link.send('any', findCoordinator(id)) : null
      if (found?.error === kafkaCode.none) coordinator.node = found.node
      let error = found?.error ?? kafkaCode.none
      if (coordinator.node !== null) {
        const answer = await link.send(coordinator.node, request).catch((lost: unknown) => {
          coordinator.node = null
          throw lost
        })
        error = errorOf(answer)
        if (!isCoordinatorRetry(error)) return answer
        if (error !== concurrentTransactions) coordinator.node = null
      } else if (!isCoordinatorRetry(error)) throw kafkaError(error, `coordinator of ${id}`, found?.message)
      if (!(await patient.wait())) throw kafkaError(error, `${request.apiName} of ${id}`)
    }
  }
}

/** The sending half: sequences by partition, one ordered stream of requests to each broker. */
function sender(link: KafkaLink, producer: Producer, timeoutMs: number): Transaction['send'] {
  const sequences = new Map<string, number>()
  const sequenced = (ready: ReadyBatch) => {
    const partition = `${ready.topic}/${ready.partition}`
    const sequence = sequences.get(partition) ?? 0
    patchProducer(ready.batch, producer.producerId, producer.epoch, sequence)
    // Sequences are int32 and wrap to 0 (org.apache.kafka…DefaultRecordBatch.incrementSequence).
    sequences.set(partition, (sequence + ready.rows) % 2 ** 31)
  }
  return async (batches, leaders) => {
    const streams = byBroker(batches, leaders)
    const results = await Promise.allSettled(
      [...streams].map(([broker, stream]) =>
        pipelined(requestsOf(stream), async (round) => {
          round.forEach(sequenced)
          const request = produce(producer.transactionalId, byTopic(round), timeoutMs)
          check(await link.send(broker, request, timeoutMs), round)
        }),
      ),
    )
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) throw failed.reason
  }
}

function byBroker(batches: readonly ReadyBatch[], leaders: Leaders): Map<number, ReadyBatch[]> {
  const streams = new Map<number, ReadyBatch[]>()
  for (const ready of batches) {
    const broker = leaders.get(ready.topic)?.[ready.partition] ?? -1
    if (broker < 0) throw new PawlError('SINK_UNAVAILABLE', `${ready.topic}/${ready.partition} has no leader`)
    const stream = streams.get(broker)
    if (stream === undefined) streams.set(broker, [ready])
    else stream.push(ready)
  }
  return streams
}

/** Cuts a stream into requests: the next batch of each partition, as many partitions as fit. */
function* requestsOf(stream: readonly ReadyBatch[]): Generator<ReadyBatch[]> {
  const queues = new Map<string, ReadyBatch[]>()
  for (const ready of stream) {
    const partition = `${ready.topic}/${ready.partition}`
    const queue = queues.get(partition)
    if (queue === undefined) queues.set(partition, [ready])
    else queue.push(ready)
  }
  for (let depth = 0; queues.size > 0; depth++) {
    let round: ReadyBatch[] = []
    let bytes = 0
    for (const [partition, queue] of queues) {
      const ready = queue[depth]
      if (ready === undefined) {
        queues.delete(partition)
        continue
      }
      if (round.length > 0 && bytes + ready.batch.length > requestBytesMax) {
        yield round
        round = []
        bytes = 0
      }
      round.push(ready)
      bytes += ready.batch.length
    }
    if (round.length > 0) yield round
  }
}

/** Starts `work` in order, a few at a time; after a failure nothing more is started and all that runs is awaited. */
async function pipelined<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const underWay: Promise<void>[] = []
  let failure: { readonly error: unknown } | null = null
  for (const item of items) {
    const job = work(item).catch((error: unknown) => {
      failure ??= { error }
    })
    underWay.push(job)
    if (underWay.length >= requestsUnderWay) await underWay.shift()
    if (failure !== null) break
  }
  await Promise.all(underWay)
  if (failure !== null) throw (failure as { readonly error: unknown }).error
}

function byTopic(round: readonly ReadyBatch[]): { topic: string; batches: OutgoingBatch[] }[] {
  const topics = new Map<string, OutgoingBatch[]>()
  for (const { topic, partition, batch } of round) {
    const batches = topics.get(topic)
    if (batches === undefined) topics.set(topic, [{ partition, batch }])
    else batches.push({ partition, batch })
  }
  return [...topics].map(([topic, batches]) => ({ topic, batches }))
}

function check(answers: readonly PartitionAnswer[], round: readonly ReadyBatch[]): void {
  for (const { topic, partition, error, message, row } of answers) {
    if (error === kafkaCode.none) continue
    const fault = kafkaError(error, `records for ${topic}/${partition}`, message, { topic, partition })
    const ready = round.find((sent) => sent.topic === topic && sent.partition === partition)
    if (fault.code !== 'ROWS_REFUSED' || ready === undefined) throw fault
    const details = { ...fault.details, rows: ready.rows, rowKey: refusedRowKey(ready, row), reason: faultOf(fault) }
    throw new PawlError(fault.code, details.reason, details)
  }
}
