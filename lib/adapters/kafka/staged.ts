/**
 * Reads staged batches back for promotion, in windows of bounded memory.
 *
 * Every object is compared with its length and SHA-256 before anything of it is used; the next window is read
 * while the caller works on the last one. Order: parts as listed (task order), objects and batches as written.
 */
import { PawlError } from '../../model/errors.ts'
import type { ObjectRef } from '../../model/head.ts'
import type { StagedPart } from '../../model/manifest.ts'
import type { Store } from '../../ports/store.ts'
import { readStaged } from '../shared/staged-objects.ts'
import type { StagedBatch, StagedHandle } from './staging.ts'

/** Objects are read together until they hold this much. */
const windowBytesMax = 8 * 1024 * 1024

/** One batch, ready to be patched and sent. */
export interface ReadyBatch {
  readonly topic: string
  readonly partition: number
  readonly batch: Buffer
  readonly rows: number
}

/** A topic that a committable writes to, as it was when the rows were staged. */
export interface StagedTopic {
  readonly topic: string
  readonly topicId: string
  /** Partitions that have batches. */
  readonly partitions: ReadonlySet<number>
}

interface StagedObject {
  readonly ref: ObjectRef
  readonly topics: StagedHandle['topics']
  readonly batches: readonly StagedBatch[]
}

/** The topics and partitions of all parts. Throws `TOPIC_RECREATED` when the parts disagree about a topic's id. */
export function stagedTopics(parts: readonly StagedPart[]): StagedTopic[] {
  const found = new Map<string, { topicId: string; partitions: Set<number> }>()
  for (const { topics, batches } of stagedObjects(parts)) {
    for (const [index, partition] of batches) {
      const { topic, topicId } = topics[index]
      const known = found.get(topic)
      if (known === undefined) found.set(topic, { topicId, partitions: new Set([partition]) })
      else if (known.topicId === topicId) known.partitions.add(partition)
      else throw new PawlError('TOPIC_RECREATED', `topic ${topic}, while the epoch was staged`)
    }
  }
  return [...found].map(([topic, { topicId, partitions }]) => ({ topic, topicId, partitions }))
}

/** All batches, window by window. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function* stagedWindows(store: Store, parts: readonly StagedPart[]): AsyncGenerator<ReadyBatch[]> {
  const windows = grouped(stagedObjects(parts))
  let next = windows.length > 0 ? readWindow(store, windows[0]) : undefined
  for (let at = 0; at < windows.length; at++) {
    const window = await next!
    next = at + 1 < windows.length ? readWindow(store, windows[at + 1]) : undefined
    // Awaited one turn later; without this a failure meanwhile would count as unhandled.
    next?.catch(() => undefined)
    yield window
  }
}

function stagedObjects(parts: readonly StagedPart[]): StagedObject[] {
  return parts.flatMap((part) => {
    const handle = part.handle as StagedHandle
    if (handle?.version !== 1 || handle.objects?.length !== part.objects.length)
      throw new PawlError('OBJECT_DAMAGED', `the handle of a part of lane ${part.lane} is not of version 1`)
    return part.objects.map((ref, index) => ({ ref, topics: handle.topics, batches: handle.objects[index] }))
  })
}

function grouped(objects: readonly StagedObject[]): StagedObject[][] {
  const windows: StagedObject[][] = []
  let room = 0
  for (const object of objects) {
    room -= object.ref.bytes
    if (room >= 0) windows.at(-1)!.push(object)
    else {
      windows.push([object])
      room = windowBytesMax - object.ref.bytes
    }
  }
  return windows
}

async function readWindow(store: Store, objects: readonly StagedObject[]): Promise<ReadyBatch[]> {
  const contents = await Promise.all(objects.map(({ ref }) => readStaged(store, ref)))
  return objects.flatMap((object, index) => sliced(object, contents[index]))
}

function sliced({ ref, topics, batches }: StagedObject, content: Buffer): ReadyBatch[] {
  let end = 0
  const ready = batches.map(([topic, partition, bytes, rows]) => {
    end += bytes
    return { topic: topics[topic].topic, partition, batch: content.subarray(end - bytes, end), rows }
  })
  if (end !== content.length) throw new PawlError('OBJECT_DAMAGED', `${ref.name} does not match its index`)
  return ready
}
