import { describe, expect, test } from 'vitest'
import { watchInterrupts } from '../../lib/cli/watch-interrupts.ts'
import { linesOf, project, succeed, wordCount } from './command.ts'

/** A program that never ends by itself, and says what it is told. */
const stubborn = (module: string) => `
import { watchInterrupts } from ${JSON.stringify(module)}
const interrupts = watchInterrupts()
setInterval(() => {}, 1000)
interrupts.onFirst(() => console.log('first', interrupts.by(), interrupts.signal.aborted))
interrupts.onSecond(() => console.log('second'))
console.log('ready')
`

describe('Ctrl-C', () => {
  test('once asks for an end, however often it is sent on; twice ends at once with 130', async () => {
    using made = project({
      'stubborn.ts': stubborn(new URL('../../lib/cli/watch-interrupts.ts', import.meta.url).href),
    })
    let sent = 0
    const ended = await made.node(['stubborn.ts'], {
      onOutput(stdout, kill) {
        const seen = stdout.split('\n').length - 1
        if (seen === sent || sent === 2) return
        kill(sent++ === 0 ? 'SIGTERM' : 'SIGINT')
        if (sent === 2) setTimeout(() => kill('SIGINT'), 400)
      },
    })
    expect(ended).toMatchObject({ code: 130, stdout: 'ready\nfirst SIGTERM true\nsecond\n' })
  })

  test('leaves no listener behind', () => {
    const before = process.listenerCount('SIGINT')
    watchInterrupts().close()
    expect(process.listenerCount('SIGINT')).toBe(before)
  })
})

test('of two runs at once one stands by, and goes on as soon as the other ends', async () => {
  using made = project({ 'count.ts': wordCount.replace('intervalMs: 0', 'intervalMs: 0, minPauseMs: 80') })
  await succeed(made.pawl(['produce', 'lines', '--partitions', '2'], { input: linesOf(2000) }))
  let stop = () => {}
  const holding = Promise.withResolvers<void>()
  const first = made.pawl(['run', 'count.ts'], {
    onOutput(stdout, kill) {
      stop = () => kill('SIGTERM')
      if (stdout.includes('epoch 1 promoted')) holding.resolve()
    },
  })
  await holding.promise
  const second = made.pawl(['run', 'count.ts', '--until', 'caught-up'], {
    onOutput: (stdout) => stdout.includes('standing by') && stop(),
  })
  second.finally(() => stop())
  const both = await Promise.all([first, second])
  expect(both.map(({ code }) => code)).toEqual([0, 0])
  const epochs = both.map(({ stdout }) =>
    [...stdout.matchAll(/epoch (\d+) promoted, 40 in/g)].map((match) => Number(match[1])),
  )
  expect(epochs[0]!.length).toBeGreaterThan(0)
  expect(epochs[1]!.length).toBeGreaterThan(0)
  expect(epochs.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
  const { stdout } = await succeed(made.pawl(['consume', 'counts', '--keys']))
  expect(
    stdout
      .split('\n')
      .filter((line) => line.startsWith('ratchet\t'))
      .at(-1),
  ).toBe('ratchet\t2000')
})
