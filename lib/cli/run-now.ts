/**
 * `pawl run-now`: the next epoch opens without waiting for the checkpoint interval.
 */
import { hurry } from '../epoch/steer.ts'
import { PawlError } from '../model/errors.ts'
import type { Call, Command } from './parse-arguments.ts'
import { count } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import { reasonOf, type SteeredPipeline, steering, steerOptions } from './steer-pipeline.ts'

/** `pawl run-now [PIPELINE]`. */
export const runNowCommand: Command = {
  name: 'run-now',
  summary: 'let the next epoch begin at once',
  positionals: ['[PIPELINE]'],
  options: { ...steerOptions, wait: { help: 'end once all input up to the call has been looked at, and is visible' } },
  notes: [
    'a run that waits for its interval notices within an eighth of its lease (20 s); the restart delay is kept',
    'one epoch takes as much as it may: pawl drain waits until everything is read',
  ],
  examples: ['pawl run-now', 'pawl run-now word-count --stack my-stack --wait'],
  run: (call) => steering(call, (pipeline) => runNow(call, pipeline)),
}

async function runNow({ options, output }: Call, pipeline: SteeredPipeline): Promise<number> {
  const { head: seen } = pipeline
  if (seen.parked?.kind === 'failure')
    throw new PawlError('PIPELINE_PARKED', reasonOf(seen), { pipeline: seen.pipeline })
  if (seen.paused && !seen.paused.drain)
    throw new PawlError('PIPELINE_PAUSED', seen.pipeline, { pipeline: seen.pipeline })
  const { head, changed } = await hurry(pipeline.job)
  if (await pipeline.isDead(head)) {
    const fault = `no process runs ${head.pipeline}: pawl run FILE does`
    throw new PawlError('WAIT_TIMED_OUT', fault, { pipeline: head.pipeline })
  }
  const style = output.style()
  if (!options.flag('wait')) {
    await pipeline.answer(head, changed, [
      `${head.pipeline} was rung: epoch ${count(style, head.committed.epoch + 1)} comes at once`,
    ])
    return exitCodes.success
  }
  const granted = await pipeline.until((now) => !now.hurry)
  const visible = await pipeline.until((now) => now.promotedThrough >= granted.committed.epoch)
  const newest = count(style, granted.committed.epoch)
  const isNew = granted.committed.epoch > seen.committed.epoch
  await pipeline.answer(visible, changed, [
    `${head.pipeline}: ${isNew ? `epoch ${newest} is visible` : `nothing to read, epoch ${newest} is the newest`}`,
  ])
  return exitCodes.success
}
