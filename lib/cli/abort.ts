/**
 * `pawl abort`: takes the pipeline from a run that is stuck, and closes its attempt.
 *
 * First the head, so that the attempt can never commit; then the execution. Work of the attempt is lost and done
 * again; nothing that is committed is. What cannot be undone is asked for: `--yes`, or an answer at the terminal.
 */
import { createInterface } from 'node:readline/promises'
import { abortRun } from '../epoch/steer.ts'
import { PawlError } from '../model/errors.ts'
import type { Head } from '../model/head.ts'
import { type Call, type Command, misused } from './parse-arguments.ts'
import { count, duration } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import { type SteeredPipeline, steering, steerOptions, wishOf, wishOptions } from './steer-pipeline.ts'

/** `pawl abort [PIPELINE]`. */
export const abortCommand: Command = {
  name: 'abort',
  summary: 'take the pipeline from a stuck run and abort its attempt',
  positionals: ['[PIPELINE]'],
  options: { ...steerOptions, ...wishOptions, yes: { help: 'do not ask' } },
  notes: [
    'the attempt counts as failed and is planned again by a fresh run; pawl pause first keeps it from being so',
    'output that is committed and not yet visible stays, and is promoted',
  ],
  examples: ['pawl abort --yes', 'pawl abort word-count --stack my-stack --why "hangs in a call"'],
  run: (call) => steering(call, (pipeline) => abortPipeline(call, pipeline)),
}

async function abortPipeline(call: Call, pipeline: SteeredPipeline): Promise<number> {
  const { head: seen, job } = pipeline
  if (!seen.run.open) {
    await pipeline.answer(seen, false, [`${seen.pipeline}: no run holds it, there is nothing to abort`])
    return exitCodes.success
  }
  await mustBeMeant(call, `${whatOf(seen, call)} of ${seen.pipeline}`)
  const aborted = await abortRun(job, seen, wishOf(call))
  if (aborted.result === 'refused') {
    const { committed, pipeline: id } = aborted.head
    throw new PawlError('FENCED', `${id} has moved on to epoch ${committed.epoch}: nothing was aborted`, {
      pipeline: id,
    })
  }
  const stopped = aborted.stopped ? ', its execution is stopped' : ''
  const next = aborted.head.paused
    ? 'it stays paused'
    : (await pipeline.isDead(aborted.head))
      ? 'pawl run FILE goes on'
      : 'a fresh run goes on'
  await pipeline.answer(aborted.head, true, [`${whatOf(seen, call)} is aborted${stopped}; ${next}`])
  return exitCodes.success
}

function whatOf({ open, run }: Head, { output }: Call): string {
  if (open === null) return `run ${run.sequence}, which has no attempt open,`
  const style = output.style()
  const since = duration(style.nowMs - open.openedAtMs)
  return `attempt ${open.attempt.slice(0, 8)} of epoch ${count(style, open.epoch)}, open for ${since},`
}

async function mustBeMeant({ options, output }: Call, what: string): Promise<void> {
  if (options.flag('yes')) return
  if (!process.stdin.isTTY || !output.terminal) throw misused(abortCommand, `${what} would be aborted: add --yes`)
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await terminal.question(`Abort ${what} y/N? `)
    if (!/^y(es)?$/i.test(answer.trim())) throw misused(abortCommand, 'it was not confirmed')
  } finally {
    terminal.close()
  }
}
