import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Ended, type Project, project, succeed } from './command.ts'

/** Its files lie beside the pipeline directory, so that they outlive it. */
const shop = `
import { files, json, pipeline, text, topic } from 'pawl'
export default pipeline('shop', { checkpoint: { intervalMs: 0 } })
  .from(topic('orders', { value: text() }))
  .withKey((order) => order)
  .to('out', files({ directory: 'shown', key: text(), value: text(), lanes: 2 }))
`

let made: Project

beforeEach(async () => {
  made = project({ 'shop.ts': shop })
  await create('a', 'b', 'c', 'd')
  await run()
  return () => made[Symbol.dispose]()
})

const append = (lines: readonly string[], ...more: string[]) =>
  succeed(made.pawl(['produce', 'orders', ...more], { input: lines.map((line) => `${line}\n`).join('') }))
const create = (...lines: string[]) => append(lines, '--partitions', '1')
const produce = (...lines: string[]) => append(lines)
const run = (...more: string[]) => succeed(made.pawl(['run', 'shop.ts', '--until', 'caught-up', ...more]))
const sinks = (action: string, ...more: string[]) => made.pawl(['sinks', action, 'shop.ts', ...more])

function shownValues(): string[] {
  const root = made.path('shown', 'out')
  const names = readdirSync(root).filter((name) => name.endsWith('.jsonl'))
  const lines = names.flatMap((name) => readFileSync(join(root, name), 'utf8').trim().split('\n'))
  return lines.map((line) => (JSON.parse(line) as { value: string }).value).sort()
}

interface ListedLane {
  readonly registered: boolean
  readonly marker: { readonly incarnation: string; readonly epoch: number } | null
  readonly code: string | null
}

const lanesOf = (ended: Ended) => ended.records()[0]!.lanes as ListedLane[]

/** The directory of the pipeline is gone, its sink is not. */
async function beginAnew(...lines: string[]): Promise<void> {
  rmSync(made.path('.pawl'), { recursive: true })
  await create(...lines)
}

describe('pawl sinks', () => {
  test('lists what each lane shows', async () => {
    const { stdout } = await succeed(sinks('list'))
    expect(stdout).toMatch(/out\/0 .*epoch 1 of incarnation [0-9a-f]{32} +sound\n/)
    expect(lanesOf(await succeed(sinks('list', '--json')))).toMatchObject([
      { registered: true, marker: { epoch: 1 }, code: null },
      { registered: true, marker: { epoch: 1 }, code: null },
    ])
  })

  test('adopts the lanes of another incarnation, and only when told twice', async () => {
    await beginAnew('e', 'f')
    const refused = await made.pawl(['run', 'shop.ts', '--until', 'caught-up'])
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('pawl sinks adopt FILE')])
    const listed = await sinks('list', '--json')
    expect(listed.code).toBe(1)
    expect(lanesOf(listed).map(({ code }) => code)).toEqual(['MARKER_FOREIGN', 'MARKER_FOREIGN'])

    const asked = await sinks('adopt')
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('add --yes')])
    expect(asked.stdout).toContain('what that one wrote stays visible')
    await succeed(sinks('adopt', '--dry-run'))
    expect((await sinks('list')).code).toBe(1)

    const [done] = (await succeed(sinks('adopt', '--yes', '--json'))).records()
    expect(done).toMatchObject({ action: 'adopt', done: true, lanes: [{ from: { epoch: 1 }, to: { epoch: 0 } }, {}] })
    expect((await succeed(sinks('adopt', '--yes'))).stdout).toBe('no lane to adopt\n')
    await run('--resume')
    expect(shownValues()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    await succeed(sinks('list'))
  })

  test('resets a sink whose pipeline begins anew', async () => {
    await beginAnew('e', 'f')
    const asked = await sinks('reset')
    expect([asked.code, asked.stdout]).toEqual([2, expect.stringContaining('rows through epoch 1 stay visible')])
    await succeed(sinks('reset', '--yes'))
    await run()
    expect(shownValues()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  })

  test('gives a registered lane its lost marker back, from which the pipeline goes on', async () => {
    await produce('e', 'f', 'g')
    await run()
    const before = lanesOf(await succeed(sinks('list', '--json')))
    const reset = await succeed(sinks('reset', '--yes', '--sink', 'out'))
    expect(reset.stdout).toContain('this incarnation stops with MARKER_MISSING')
    expect(lanesOf(await sinks('list', '--json')).map(({ code }) => code)).toEqual(['MARKER_MISSING', 'MARKER_MISSING'])
    await succeed(sinks('adopt', '--yes'))
    expect(lanesOf(await succeed(sinks('list', '--json')))).toEqual(before)
    await produce('h')
    await run()
    expect(shownValues()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
    await succeed(made.pawl(['verify', '--file', 'shop.ts']))
  })

  test('prepares what the sinks need, before there is a pipeline', async () => {
    rmSync(made.path('.pawl'), { recursive: true })
    made.write(
      'tables.ts',
      `import { json, pipeline, text, topic } from 'pawl'
import { postgres } from 'pawl/postgres'
export default pipeline('tables').from(topic('orders', { value: json() }))
  .to('rows', postgres({ connection: 'postgres://nobody@127.0.0.1:1/none', table: 't' }))`,
    )
    const said = await succeed(made.pawl(['sinks', 'prepare', 'tables.ts', '--dry-run']))
    expect(said.stdout).toContain('sink rows in postgres:t: would be sent\nCREATE TABLE IF NOT EXISTS "pawl_markers" (')
    const failed = await made.pawl(['sinks', 'prepare', 'tables.ts'])
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('SINK_UNAVAILABLE')])
    expect((await succeed(sinks('prepare'))).stdout).toContain('needs nothing')
  })

  test('refuses what it does not know', async () => {
    const calls = [
      [await sinks('drop'), 'none of list, prepare, adopt, reset'],
      [await sinks('list', '--sink', 'other'), 'has no sink other, but out'],
      [await sinks('adopt', '--dir', 'nowhere'), 'nowhere is no pipeline directory'],
    ] as const
    for (const [{ code, stderr }, text] of calls) {
      expect(code).toBeGreaterThan(0)
      expect(stderr).toContain(text)
    }
    expect(readdirSync(made.directory)).not.toContain('nowhere')
  })
})
