import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { placeStatus, processPlace } from '../../../lib/adapters/system/liveness.ts'

const changed = (part: number, value: string) => {
  const parts = processPlace().split(':')
  parts[part] = value
  return parts.join(':')
}
const printPlace = `import('${new URL('../../../lib/adapters/system/liveness.ts', import.meta.url)}')
  .then(({ processPlace }) => { console.log(processPlace()); setInterval(() => {}, 1000) })`

test('names this process, which runs', () => {
  expect(processPlace()).toMatch(/^(linux|other):[\w.-]+:[\w-]+:[\w-]+:[\w-]+:\d+:[\d-]+$/)
  expect(processPlace()).toBe(processPlace())
  expect(placeStatus(processPlace())).toBe('running')
})

test('sees another process run, and be gone once it was killed', async () => {
  const child = spawn(process.execPath, ['-e', printPlace], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [output] = await once(child.stdout, 'data')
  const place = String(output).trim()
  expect(place).not.toBe(processPlace())
  expect(placeStatus(place)).toBe('running')
  child.kill('SIGKILL')
  await once(child, 'close')
  expect(placeStatus(place)).toBe('gone')
})

test.runIf(process.platform === 'linux')('counts a zombie as gone', async () => {
  // The shell becomes a program that never collects its child.
  const shell = spawn('sh', ['-c', '"$0" -e "$1" & exec sleep 60', process.execPath, printPlace], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output] = await once(shell.stdout, 'data')
  const place = String(output).trim()
  expect(placeStatus(place)).toBe('running')
  process.kill(Number(place.split(':')[5]), 'SIGKILL')
  await expect.poll(() => placeStatus(place)).toBe('gone')
  shell.kill('SIGKILL')
})

test.runIf(process.platform === 'linux')('is not misled by a process id that another process has now', () => {
  expect(placeStatus(changed(6, '1'))).toBe('gone')
  expect(placeStatus(changed(5, '4194305'))).toBe('gone')
})

test.runIf(process.platform === 'linux')('knows nothing of other hosts, machines and containers', () => {
  expect(placeStatus(changed(1, 'elsewhere'))).toBe('unknown')
  expect(placeStatus(changed(2, 'feedbeef'))).toBe('unknown')
  expect(placeStatus(changed(4, '1'))).toBe('unknown')
  for (const place of ['', 'lambda:arn', changed(5, '0'), changed(5, '-1'), changed(5, 'x'), `${processPlace()}:1`]) {
    expect(placeStatus(place), place).toBe('unknown')
  }
})

test('knows that nothing survived a boot of this machine', () => {
  const [, , machine, boot] = processPlace().split(':')
  if (machine === '-' || boot === '-') expect(placeStatus(changed(3, 'before'))).toMatch(/unknown|running/)
  else expect(placeStatus(changed(3, 'before'))).toBe('gone')
})
