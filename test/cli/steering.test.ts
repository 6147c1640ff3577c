import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Ended, linesOf, type Project, project, succeed } from './command.ts'
import { type Transcript, transcript } from './transcript.ts'

/** A word count that hangs at a word while there is a file `hang`, and fails at another one while there is `fail`. */
const fragile = `
import { existsSync } from 'node:fs'
import { json, pipeline, text, topic } from 'pawl'
const hang = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000)
const watch = (word) => {
  if (word === 'hangs' && existsSync('hang')) hang()
  if (word === 'fails' && existsSync('fail')) throw new Error('the dictionary is closed')
  return word
}
export default pipeline('word-count', { checkpoint: { intervalMs: 0 }, restart: { strategy: 'fixed-delay', attempts: 1, delayMs: 10 } })
  .from(topic('lines', { value: text() }))
  .flatMap((line) => line.split(' '))
  .map((word) => watch(word))
  .keyBy((word) => word)
  .count('counter')
  .to('counts', topic('counts', { key: text(), value: json<number>() }))
`
const written = transcriptOf()
const wish = ['--by', 'ada', '--why', 'broker upgrade']

/** Filled by all three tests, in their order, and compared by the last one with the page of the docs. */
function transcriptOf() {
  const state: { made: Project | null } = { made: null }
  const pawl = (words: readonly string[]) => state.made!.pawl(words)
  return { on: (made: Project) => Object.assign(state, { made }), to: transcript(pawl) as Transcript }
}

async function made(): Promise<Project> {
  const one = project({ 'count.ts': fragile })
  written.on(one)
  await succeed(one.pawl(['produce', 'lines', '--partitions', '1'], { input: linesOf(100) }))
  await succeed(one.pawl(['run', 'count.ts', '--until', 'caught-up']))
  return one
}

/** Polls the status until it is as wanted. */
async function until(one: Project, isSo: (status: Record<string, unknown>) => boolean): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const [status] = (await one.pawl(['status', '--json'])).records()
    if (isSo(status!)) return
    await sleep(50)
  }
  throw new Error('it does not come')
}

/** A process that keeps the pipeline going, and how to end it. */
function running(one: Project): { ended: Promise<Ended>; kill(signal: NodeJS.Signals): void } {
  let kill = (_: NodeJS.Signals) => {}
  const ended = one.pawl(['run', 'count.ts'], {
    onOutput: (_, signal) => {
      kill = signal
    },
  })
  return { ended, kill: (signal) => kill(signal) }
}

const feed = (one: Project, line: string) => succeed(one.pawl(['produce', 'lines'], { input: `${line}\n` }))
const isAtRest = ({ state }: Record<string, unknown>) => state === 'at rest'
const isOpen = ({ open }: Record<string, unknown>) => open !== null

describe('commands that look and steer', { timeout: 60_000 }, () => {
  test('a running pipeline is held, drained, hurried, and taken from its run', async () => {
    using one = await made()
    const { to } = written
    const { ended, kill } = running(one)
    await feed(one, 'ratchet')
    await until(one, ({ committed }) => (committed as { epoch: number }).epoch === 2)
    await until(one, isAtRest)
    to.heading('A running pipeline')
    for (const look of [['status'], ['epochs'], ['show', 'last'], ['verify']]) await to.say(0, ...look)
    one.write('renamed.ts', fragile.replace("'counter'", "'totals'"))
    await to.say(0, 'diff', 'count.ts')
    await to.say(1, 'diff', 'renamed.ts')
    await to.say(0, 'run-now', '--wait')
    await to.say(0, 'pause', '--wait', ...wish)
    await to.say(4, 'status')
    await to.say(4, 'run-now')
    await feed(one, 'pawl')
    await to.say(0, 'drain', ...wish)
    await to.say(0, 'pause')
    await feed(one, 'beyond')
    const [held] = (await one.pawl(['status', '--json'])).records()
    expect(held).toMatchObject({ committed: { epoch: 3 }, lag: [{ records: '1' }] })
    await to.say(0, 'resume')
    await until(one, ({ committed }) => (committed as { epoch: number }).epoch === 4)
    await until(one, isAtRest)
    await to.say(0, 'abort', '--yes')
    writeFileSync(one.path('hang'), '')
    await feed(one, 'hangs')
    await until(one, isOpen)
    await to.say(2, 'abort')
    await to.say(0, 'pause')
    await to.say(4, 'status')
    rmSync(one.path('hang'))
    await to.say(0, 'abort', '--yes')
    kill('SIGKILL')
    await ended
    await to.say(0, 'verify')
  })

  test('a parked pipeline waits for a person, and goes on once resumed', async () => {
    using one = await made()
    const { to } = written
    writeFileSync(one.path('fail'), '')
    await feed(one, 'fails')
    to.heading('A parked pipeline')
    await to.say(3, 'run', 'count.ts', '--until', 'caught-up')
    await to.say(3, 'status')
    for (const look of [['epochs'], ['show', 'last'], ['verify']]) await to.say(0, ...look)
    await to.say(0, 'diff', 'count.ts')
    await to.say(3, 'drain')
    await to.say(3, 'run-now')
    await to.say(0, 'abort', '--yes')
    await to.say(0, 'pause', ...wish)
    await to.say(3, 'status')
    rmSync(one.path('fail'))
    await to.say(0, 'resume')
    const { stdout } = await succeed(one.pawl(['run', 'count.ts', '--until', 'caught-up', '--json']))
    expect(stdout).toContain('"reason":"caught-up"')
    await to.say(0, 'status')
  })

  test('a dead pipeline is held and released by the head alone, and whoever runs it next finds the wish', async () => {
    using one = await made()
    const { to } = written
    writeFileSync(one.path('hang'), '')
    await feed(one, 'hangs')
    const { ended, kill } = running(one)
    await until(one, isOpen)
    kill('SIGKILL')
    await ended
    rmSync(one.path('hang'))
    to.heading('A dead pipeline')
    await to.say(0, 'status')
    for (const look of [['epochs'], ['show', 'last'], ['verify']]) await to.say(0, ...look)
    await to.say(0, 'diff', 'count.ts')
    await to.say(0, 'pause', '--wait', ...wish)
    await to.say(4, 'status')
    await to.say(0, 'abort', '--yes')
    await to.say(4, 'run', 'count.ts', '--until', 'caught-up')
    await to.say(0, 'resume')
    await to.say(1, 'run-now')
    await to.say(1, 'drain')
    await to.say(4, 'run', 'count.ts', '--until', 'caught-up')
    await to.say(4, 'status')
    await to.say(0, 'resume')
    await to.say(0, 'verify')
  })

  test('what they print stands in docs/command-output.md; run vitest with -u to write it again', async () => {
    const page = written.to.text('What the commands print')
    await expect(page).toMatchFileSnapshot('../../docs/command-output.md')
    expect(readFileSync(new URL('../../docs/command-output.md', import.meta.url), 'utf8')).toContain('A dead pipeline')
  })
})
