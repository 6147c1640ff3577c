/**
 * `pawl drain`: everything that the logs hold becomes visible, then the pipeline is paused.
 *
 * What a migration or a savepoint wants: when it ends with 0, all input up to the call is visible in every sink, and
 * nothing more is read. Windows stay open, since the watermark is not forced.
 */
import { drain } from '../epoch/steer.ts'
import { PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import { manifestIfReadable } from './open-directory.ts'
import type { Call, Command } from './parse-arguments.ts'
import { count } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import { isAtRest } from './report-status.ts'
import { reasonOf, type SteeredPipeline, steering, steerOptions, wishOf, wishOptions } from './steer-pipeline.ts'

/** `pawl drain [PIPELINE]`. */
export const drainCommand: Command = {
  name: 'drain',
  summary: 'make all input so far visible, then pause',
  positionals: ['[PIPELINE]'],
  options: { ...steerOptions, ...wishOptions },
  notes: [
    'ends with 0 once all input up to the call is visible and nothing more is read; otherwise the wish stays',
    'windows stay open: the watermark is not forced; records of open transactions come after pawl resume',
  ],
  examples: ['pawl drain --why migration', 'pawl drain word-count --stack my-stack --timeout 3600'],
  run: (call) => steering(call, (pipeline) => drainPipeline(call, pipeline)),
}

async function drainPipeline(call: Call, pipeline: SteeredPipeline): Promise<number> {
  const { head: seen } = pipeline
  if (seen.parked?.kind === 'failure')
    throw new PawlError('PIPELINE_PARKED', reasonOf(seen), { pipeline: seen.pipeline })
  const { head: wished, changed } = await drain(pipeline.job, wishOf(call))
  if (await pipeline.isDead(wished)) {
    const fault = `no process runs ${wished.pipeline}: pawl run FILE --until caught-up drains it and ends`
    throw new PawlError('WAIT_TIMED_OUT', fault, { pipeline: wished.pipeline })
  }
  const { id } = wished.paused ?? { id: '' }
  const head = await pipeline.until((now) => now.paused?.id !== id || (now.paused.drain === null && isAtRest(now)))
  if (head.paused?.id !== id) {
    const fault = `another person has lifted or replaced the drain of ${head.pipeline}`
    throw new PawlError('WAIT_TIMED_OUT', fault, { pipeline: head.pipeline })
  }
  await pipeline.answer(head, changed, [await drainedText(pipeline, head, call)])
  return exitCodes.success
}

async function drainedText({ store }: SteeredPipeline, head: Head, { output }: Call): Promise<string> {
  const style = output.style()
  const manifest = await manifestIfReadable(store, head.committed.manifest)
  const ends = manifest?.progress.map(({ source, partition, end }) => `${source}/${partition} ${count(style, end)}`)
  const upTo = ends === undefined ? '' : ` up to ${ends.join(', ')}`
  return `${head.pipeline} is drained and paused: visible${upTo}, through epoch ${count(style, head.promotedThrough)}`
}
