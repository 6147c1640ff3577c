/**
 * Collect: deletes what no root reaches. Lists first, then reads the head.
 *
 * Reads:  all names of the incarnation, then the head, then retained manifests. Writes: retained-from, then deletes.
 * Safe to repeat because: whatever is written after the listing is not in it, and whatever the head reaches at the
 * later reading is kept; the other order would delete an epoch that committed in between. Retained-from is raised
 * by compare-and-set before anything is deleted. Never by age, never from memory.
 */
import type { Head, ObjectRef } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import { attemptPrefix, incarnationPrefix } from '../model/names.ts'
import { amend, readHead } from './amend.ts'
import { type Job, openSink, openSource } from './job.ts'
import { permitOf } from './permit.ts'
import { unseal } from './seal.ts'

/** What one collection did, in objects. */
export interface Collected {
  readonly deleted: number
  readonly kept: number
  readonly retainedFrom: number
}

export async function collect(job: Job): Promise<Collected> {
  const before = await readHead(job)
  const listed: string[] = []
  for await (const { name } of job.place.store.list(incarnationPrefix(before.pipeline, before.incarnation)))
    listed.push(name)
  const staged = await listStaged(job, before.incarnation)
  const head = await raiseRetained(job)
  if (head.incarnation !== before.incarnation)
    return { deleted: 0, kept: listed.length, retainedFrom: head.retainedFrom }
  const { names, prefixes, handles, input } = await rootsOf(job, head)
  const garbage = listed.filter((name) => !names.has(name) && !prefixes.some((prefix) => name.startsWith(prefix)))
  await job.place.store.delete(garbage)
  await sweepSinks(job, head, staged, handles)
  await retainInput(job, head, input)
  return { deleted: garbage.length, kept: listed.length - garbage.length, retainedFrom: head.retainedFrom }
}

/** Keeps the newest epochs, everything unpromoted, and whatever was to be kept before. */
async function raiseRetained(job: Job): Promise<Head> {
  const amended = await amend(job, (head) => {
    const from = Math.max(0, Math.min(head.committed.epoch - job.compiled.settings.retain.epochs, head.promotedThrough))
    return from > head.retainedFrom ? { ...head, retainedFrom: from } : null
  })
  return amended.head
}

interface Roots {
  readonly names: Set<string>
  /** All of the open attempt. */
  readonly prefixes: readonly string[]
  readonly handles: readonly { readonly sink: string; readonly handle: unknown }[]
  /** By source and partition, from where on input may be read again: by replays of retained epochs, after a restore. */
  readonly input: ReadonlyMap<string, ReadonlyMap<number, bigint>>
}

async function rootsOf(job: Job, head: Head): Promise<Roots> {
  const names = new Set<string>()
  const handles: { sink: string; handle: unknown }[] = []
  const input = new Map<string, Map<number, bigint>>()
  const keep = (ref: ObjectRef) => names.add(ref.name)
  const refs = [...head.savepoints.map((savepoint) => savepoint.manifest)]
  for (let epoch = head.retainedFrom; epoch <= head.committed.epoch; epoch++)
    refs.push((await permitOf(job, head, epoch)).manifest)
  for (const ref of refs) {
    keep(ref)
    const manifest = await unseal<Manifest>(job.place.store, ref)
    keepInput(input, manifest)
    for (const snapshot of manifest.snapshots) snapshot.files.forEach(keep)
    if (manifest.rejected !== null) keep(manifest.rejected)
    if (manifest.refused !== undefined) keep(manifest.refused.object)
    for (const { sink, parts } of manifest.committables) {
      for (const part of parts) {
        part.objects.forEach(keep)
        handles.push({ sink, handle: part.handle })
      }
    }
  }
  const prefixes = head.open === null ? [] : [attemptPrefix(head.pipeline, head.incarnation, head.open.attempt)]
  return { names, prefixes, handles, input }
}

function keepInput(input: Map<string, Map<number, bigint>>, { progress }: Manifest): void {
  for (const { source, partition, start } of progress) {
    const kept = input.get(source) ?? new Map<number, bigint>()
    input.set(source, kept)
    const before = kept.get(partition)
    if (before === undefined || BigInt(start) < before) kept.set(partition, BigInt(start))
  }
}

/** Logs that the pipeline keeps itself let go of what no root reads again. */
async function retainInput(job: Job, head: Head, input: Roots['input']): Promise<void> {
  for (const [source, from] of input) {
    if (source in job.compiled.sources) await (await openSource(job, source, head.incarnation)).retain?.(from)
  }
}

async function listStaged(job: Job, incarnation: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const staged = new Map<string, readonly string[]>()
  for (const sink of Object.keys(job.compiled.sinks)) {
    staged.set(sink, (await (await openSink(job, sink, incarnation)).staged?.()) ?? [])
  }
  return staged
}

/** Staging that lives in a sink itself is swept by the sink, with the same roots and in the same order. */
async function sweepSinks(
  job: Job,
  head: Head,
  staged: ReadonlyMap<string, readonly string[]>,
  handles: Roots['handles'],
): Promise<void> {
  if (head.open !== null) return
  for (const [sink, listed] of staged) {
    if (listed.length === 0) continue
    const kept = handles.filter((held) => held.sink === sink).map((held) => held.handle)
    await (await openSink(job, sink, head.incarnation)).sweep?.(listed, kept)
  }
}
