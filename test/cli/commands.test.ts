import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { countedProject, linesOf, type Project, project, succeed, wordCount } from './command.ts'

describe('a pipeline that has run', () => {
  let made: Project

  beforeAll(async () => {
    made = await countedProject()
  })
  afterAll(() => made[Symbol.dispose]())

  test('shows each word once with its count', async () => {
    const { stdout } = await succeed(made.pawl(['consume', 'counts', '--keys']))
    const last = new Map(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split('\t') as [string, string]),
    )
    expect(last.get('ratchet')).toBe('100')
    expect(last.get('w3')).toBe('10')
    expect(last.size).toBe(12)
  })

  test('lists its epochs with counts that add up', async () => {
    const { stdout } = await succeed(made.pawl(['epochs']))
    expect(stdout).toMatch(/^epoch +committed +age +in +out +late +rejected +took +attempt +promoted\n/)
    expect(stdout).toMatch(/\n +0 /)
    const [record] = (await succeed(made.pawl(['epochs', 'word-count', '--json']))).records()
    const epochs = record.epochs as { epoch: number; counts: { in: number; out: object }; promoted: boolean }[]
    expect(record).toMatchObject({ pipeline: 'word-count', state: 'at rest', parked: null, promotedThrough: 3 })
    expect(epochs.map(({ epoch }) => epoch)).toEqual([0, 1, 2, 3])
    expect(epochs.reduce((sum, { counts }) => sum + counts.in, 0)).toBe(100)
    expect(epochs.every(({ promoted }) => promoted)).toBe(true)
  })

  test('lists only the last epochs when asked', async () => {
    const [record] = (await succeed(made.pawl(['epochs', '--last', '2', '--json']))).records()
    expect((record.epochs as { epoch: number }[]).map(({ epoch }) => epoch)).toEqual([2, 3])
  })

  test('shows one epoch: ranges, output, state', async () => {
    const { stdout } = await succeed(made.pawl(['show', '2']))
    expect(stdout).toMatch(/^epoch +2$/m)
    expect(stdout).toMatch(/^ {2}lines +0 +20 +40 +20 /m)
    expect(stdout).toMatch(/^ {2}counts\/0 +12 .*epoch 1 +files:/m)
    expect(stdout).toMatch(/^ {2}counter +aggregate +\[0, 128\) /m)
    const [record] = (await succeed(made.pawl(['show', 'last', '--json']))).records()
    expect(record).toMatchObject({
      promoted: true,
      rejected: [],
      item: { epoch: 3 },
      manifest: { epoch: 3, counts: { in: 20 } },
    })
  })

  test('is sound', async () => {
    const { stdout } = await succeed(made.pawl(['verify']))
    expect(stdout).toMatch(/^chain +4 epochs, 0 to 3$/m)
    expect(stdout).toMatch(/^markers +1 lane$/m)
    expect(stdout).toMatch(/^verdict +sound$/m)
    const [record] = (await succeed(made.pawl(['verify', '--json']))).records()
    expect(record).toMatchObject({ pipeline: 'word-count', epochs: 4, lanes: 1, unreadable: [], faults: [] })
  })

  test('has no lag and says so', async () => {
    const { stdout } = await succeed(made.pawl(['status']))
    expect(stdout).toMatch(/^state +at rest$/m)
    expect(stdout).toMatch(/^lag +0$/m)
    const [record] = (await succeed(made.pawl(['status', '--json']))).records()
    expect(record.lag).toEqual([0, 1].map((partition) => ({ source: 'lines', partition, records: '0' })))
  })

  test('has no orphans once it was collected', async () => {
    const collect = async () => (await succeed(made.pawl(['collect', 'count.ts', '--json']))).records()[0]
    const { deleted, kept } = await collect()
    expect(deleted).toBeGreaterThan(0)
    expect(await collect()).toEqual({ pipeline: 'word-count', deleted: 0, kept, retainedFrom: 0 })
    expect((await succeed(made.pawl(['verify']))).stdout).toMatch(/^orphans +none$/m)
  })

  test('is simulated seed by seed', async () => {
    const { stdout } = await succeed(made.pawl(['simulate', 'count.ts', '--seeds', '3']))
    expect(stdout).toMatch(/^3 seeds, \d+ epochs, .*nothing broke/)
    const twice = [1, 2].map(() => made.pawl(['simulate', 'count.ts', '--seed', '7', '--json', '--trace']))
    const [a, b] = await Promise.all(twice)
    expect(a.code).toBe(0)
    expect(a.records()).toEqual(b.records())
    expect(a.records()[0]).toMatchObject({ firstSeed: 7, seeds: 1, failed: null })
  })
})

test('show lists records that were rejected, and how many more there are', async () => {
  using made = project({
    'skip.ts': `
import { json, pipeline, text, topic } from 'pawl'
export default pipeline('skip', { onError: 'skip' })
  .from(topic('numbers', { value: json<number>() }))
  .to('same', topic('same', { value: json<number>() }))
`,
  })
  await succeed(made.pawl(['produce', 'numbers', '--partitions', '1'], { input: '1\nx\n2\ny\nz\n' }))
  await succeed(made.pawl(['run', 'skip.ts', '--until', 'caught-up']))
  const { stdout } = await succeed(made.pawl(['show', 'last', '--rejected', '2']))
  expect(stdout).toMatch(/^records +5 in, 0 late, 3 rejected$/m)
  expect(stdout).toMatch(
    /^rejected \(3\)\n {2}numbers\/0@1 {2}numbers {2}SyntaxError: .*\n {2}numbers\/0@3 .*\n {2}and 1 more\n$/m,
  )
  const [record] = (await succeed(made.pawl(['show', 'last', '--json']))).records()
  expect(record.rejected).toHaveLength(3)
  expect((await succeed(made.pawl(['verify']))).stdout).toContain('sound')
})

test('a simulation that breaks prints what happened and the seed that shows it again', async () => {
  using made = project({
    'moody.ts': `
import { json, pipeline, text, topic } from 'pawl'
let calls = 0
export default pipeline('moody')
  .from(topic('lines', { value: text() }))
  .map(() => calls++)
  .to('calls', topic('calls', { value: json<number>() }))
`,
  })
  const { code, stdout, stderr } = await made.pawl(['simulate', 'moody.ts', '--seed', '3'])
  expect(code).toBe(1)
  expect(stdout).toMatch(/commits epoch 1/)
  expect(stderr).toMatch(
    /^SIMULATION_FAILED: .*: seed 3 of moody\.ts: .* \(pawl simulate moody\.ts --seed 3\)\. Next: .*\n$/,
  )
  const [{ error }] = (await made.pawl(['simulate', 'moody.ts', '--seed', '3', '--json'])).records()
  expect(error).toMatchObject({
    code: 'SIMULATION_FAILED',
    details: { seed: 3, trace: expect.stringContaining('commits') },
  })
})

describe('produce', () => {
  test('sends keys where the Java client does, and deals out what has none', async () => {
    using made = project()
    const keyed = await succeed(
      made.pawl(['produce', 'flights', '--partitions', '12', '--key-separator', '|', '--json'], {
        input: '100:48069|a\n',
      }),
    )
    const ends = (partitions: unknown) => (partitions as { end: string }[]).map(({ end }) => Number(end))
    expect(ends(keyed.records()[0].partitions)).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0])
    const dealt = await succeed(made.pawl(['produce', 'flights', '--json'], { input: linesOf(24) }))
    expect(dealt.records()[0]).toMatchObject({ topic: 'flights', records: 24 })
    expect(ends(dealt.records()[0].partitions).every((end) => end >= 2)).toBe(true)
    const { stdout } = await succeed(made.pawl(['consume', 'flights', '--json']))
    const found = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { key: string | null })
    expect(found.filter(({ key }) => key === '100:48069')).toEqual([
      expect.objectContaining({ partition: 9, value: 'a' }),
    ])
  })

  test('takes a file, with the last line unfinished and carriage returns dropped', async () => {
    using made = project({ 'lines.txt': 'one\r\ntwo\nthree' })
    const { stdout } = await succeed(made.pawl(['produce', 'lines', '--partitions', '1', '--file', 'lines.txt']))
    expect(stdout).toBe('appended 3 records, 11 B, to lines; partitions now end at 0: 3\n')
    expect((await succeed(made.pawl(['consume', 'lines']))).stdout).toBe('one\ntwo\nthree\n')
  })
})

describe('run', () => {
  test('prints one line an epoch in a pipe, and a sum', async () => {
    using made = project({ 'count.ts': wordCount })
    await succeed(made.pawl(['produce', 'lines', '--partitions', '2'], { input: linesOf(100) }))
    const { stdout, stderr } = await succeed(made.pawl(['run', 'count.ts', '--until', 'caught-up']))
    const epochs = stdout.split('\n').filter((line) => / epoch \d+ promoted, /.test(line))
    expect(epochs).toHaveLength(3)
    expect(epochs[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z {2}epoch 1 promoted, 40 in, counts 12, took \d+ms, watermark /)
    expect(stdout).toMatch(/\ncaught-up after .*: 100 records, 36 rows to counts\n$/)
    expect(stdout).not.toContain('\x1b')
    expect(stderr).toBe('')
  })

  test('speaks one event a line under --json, and how it ended', async () => {
    using made = project({ 'count.ts': wordCount })
    await succeed(made.pawl(['produce', 'lines', '--partitions', '2'], { input: linesOf(100) }))
    const ran = await succeed(made.pawl(['run', 'count.ts', '--until', 'caught-up', '--json']))
    const lines = ran.stdout.trimEnd().split('\n')
    // Programs know an event by how its line begins.
    expect(lines.filter((line) => !/^\{"event":"/.test(line))).toEqual([])
    const records = ran.records()
    const committed = records.filter(({ event }) => event === 'committed')
    expect(committed.map(({ epoch }) => epoch)).toEqual([1, 2, 3])
    expect(records.at(-1)).toMatchObject({
      event: 'ended',
      reason: 'caught-up',
      committed: 3,
      counts: { in: 100 },
      failures: 0,
    })
  })

  test('goes on where it left off, on a named export in another directory', async () => {
    using made = project({ 'count.ts': `${wordCount.replace('export default', 'export const counting =')}` })
    const run = ['run', 'count.ts', '--export', 'counting', '--dir', 'elsewhere', '--until', 'caught-up', '--json']
    await succeed(made.pawl(['produce', 'lines', '--partitions', '1', '--dir', 'elsewhere'], { input: linesOf(50) }))
    await succeed(made.pawl(run))
    await succeed(made.pawl(['produce', 'lines', '--dir', 'elsewhere'], { input: linesOf(30) }))
    const records = (await succeed(made.pawl(run))).records()
    expect(records.at(-1)).toMatchObject({ reason: 'caught-up', counts: { in: 30 } })
    expect(readdirSync(made.directory)).not.toContain('.pawl')
    expect((await succeed(made.pawl(['verify', '--dir', 'elsewhere']))).stdout).toContain('sound')
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 0],
  ] as const)('ends after the epoch under way on %s, and leaves a sound chain', async (signal, code) => {
    using made = project({ 'count.ts': wordCount })
    await succeed(made.pawl(['produce', 'lines', '--partitions', '2'], { input: linesOf(4000) }))
    let sent = false
    const ended = await made.pawl(['run', 'count.ts', '--json'], {
      onOutput(stdout, kill) {
        if (sent || !stdout.includes('"finalized"')) return
        sent = true
        kill(signal)
      },
    })
    expect(ended.code).toBe(code)
    expect(ended.stderr).toBe('stopping after the epoch under way; Ctrl-C again abandons it\n')
    const records = ended.records()
    const last = (event: string) => records.filter((record) => record.event === event).at(-1)?.epoch
    expect(records.at(-1)).toMatchObject({ event: 'ended', reason: 'stopped' })
    expect(last('finalized')).toBe(last('committed'))
    expect((await succeed(made.pawl(['verify']))).stdout).toContain('sound')
    expect((await succeed(made.pawl(['status']))).stdout).toMatch(/^state +at rest$/m)
  })

  test('that was killed is taken over at once, and nothing is lost or repeated', async () => {
    using made = project({ 'count.ts': wordCount })
    await succeed(made.pawl(['produce', 'lines', '--partitions', '2'], { input: linesOf(400) }))
    const killed = await made.pawl(['run', 'count.ts', '--json'], {
      onOutput: (stdout, kill) => stdout.includes('"epoch":3') && kill('SIGKILL'),
    })
    expect(killed.code).toBe(null)
    await succeed(made.pawl(['run', 'count.ts', '--until', 'caught-up']))
    const { stdout } = await succeed(made.pawl(['consume', 'counts', '--keys']))
    expect(
      stdout
        .split('\n')
        .filter((line) => line.startsWith('ratchet\t'))
        .at(-1),
    ).toBe('ratchet\t400')
    expect((await succeed(made.pawl(['verify']))).stdout).toContain('sound')
  })
})

describe('help', () => {
  test('lists every command, and each has options and examples of its own', async () => {
    using made = project()
    const { stdout } = await succeed(made.pawl(['--help']))
    const names = [...stdout.matchAll(/^ {2}([a-z-]+) {2,}/gm)].map((match) => match[1])
    expect(names).toEqual([
      'run',
      'produce',
      'consume',
      'status',
      'epochs',
      'show',
      'verify',
      'diff',
      'doctor',
      'pause',
      'resume',
      'drain',
      'run-now',
      'abort',
      'collect',
      'sinks',
      'simulate',
      'cost',
    ])
    for (const name of names) {
      const help = (await succeed(made.pawl([name, '--help']))).stdout
      expect(help).toContain(`usage: pawl ${name}`)
      expect(help).toMatch(/\nexamples:\n {2}\S/)
      expect(help).toContain('--json')
    }
    expect(stdout).toContain(
      'exit codes: 0 success, 1 failure or fault found, 2 command line not understood, 3 pipeline parked',
    )
  })

  test('the version is that of the package', async () => {
    using made = project()
    const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    expect((await succeed(made.pawl(['--version']))).stdout).toBe(`${manifest.version}\n`)
  })
})
