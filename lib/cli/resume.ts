/**
 * `pawl resume`: lifts a pause, and a park that waits for a person; lets a parked promotion try at once; rings.
 */
import { resume } from '../epoch/steer.ts'
import type { Head } from '../model/head.ts'
import type { Command } from './parse-arguments.ts'
import { exitCodes } from './report-error.ts'
import { steering, steerOptions } from './steer-pipeline.ts'

/** `pawl resume [PIPELINE]`. */
export const resumeCommand: Command = {
  name: 'resume',
  summary: 'lift a pause or a park, and go on',
  positionals: ['[PIPELINE]'],
  options: steerOptions,
  notes: ['mend what parked the pipeline first: it parks again otherwise, and nothing is lost'],
  examples: ['pawl resume', 'pawl resume word-count --stack my-stack'],
  run: (call) =>
    steering(call, async (pipeline) => {
      const { head, changed } = await resume(pipeline.job)
      const dead = await pipeline.isDead(head)
      const next = dead ? 'may go on: pawl run FILE runs it' : 'goes on'
      const lifted = changed ? liftedFrom(pipeline.head) : 'nothing held it'
      await pipeline.answer(head, changed, [`${head.pipeline} ${next}; ${lifted}`])
      return exitCodes.success
    }),
}

function liftedFrom({ paused, parked }: Head): string {
  const was = [...(paused ? ['paused'] : []), ...(parked === null ? [] : [`parked by ${parked.code}`])]
  return `it was ${was.join(' and ')}`
}
