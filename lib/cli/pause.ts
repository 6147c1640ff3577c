/**
 * `pawl pause`: no epoch opens any more, until `pawl resume`; what is committed is promoted.
 *
 * The wish stands in the head: it outlives runs, crashes and deployments.
 */
import { pause } from '../epoch/steer.ts'
import type { Call, Command } from './parse-arguments.ts'
import { exitCodes } from './report-error.ts'
import { isAtRest, pausedText } from './report-status.ts'
import { type SteeredPipeline, steering, steerOptions, wishOf, wishOptions } from './steer-pipeline.ts'

/** `pawl pause [PIPELINE]`. */
export const pauseCommand: Command = {
  name: 'pause',
  summary: 'open no further epoch, until resume',
  positionals: ['[PIPELINE]'],
  options: { ...steerOptions, ...wishOptions, wait: { help: 'end once the run has left and all output is visible' } },
  notes: ['an epoch that is open may still commit, and is promoted; pawl drain reads everything first'],
  examples: ['pawl pause --why "broker upgrade"', 'pawl pause word-count --stack my-stack --wait'],
  run: (call) => steering(call, (pipeline) => pausePipeline(call, pipeline)),
}

async function pausePipeline(call: Call, pipeline: SteeredPipeline): Promise<number> {
  const { head: wished, changed } = await pause(pipeline.job, wishOf(call))
  const isDead = await pipeline.isDead(wished)
  const head = call.options.flag('wait') && !isDead ? await pipeline.until(isAtRest) : wished
  const { paused = null } = head
  const text = paused === null ? 'resumed since' : pausedText(paused, call.output.style())
  const isHeld = !isAtRest(head) && (await pipeline.holder(head)) !== 'gone'
  const rest = !isHeld ? 'is paused' : 'pauses once its run has finished what it began'
  await pipeline.answer(head, changed, [`${head.pipeline} ${changed ? rest : 'was paused before'}, ${text}`])
  return exitCodes.success
}
