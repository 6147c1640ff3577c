import { expect, onTestFinished, test } from 'vitest'
import { entryBytes, entryName } from '../../../lib/adapters/delta/actions.ts'
import { diskTableFiles } from '../../../lib/adapters/file/table-files.ts'
import { type DeltaRig, deltaRig, type Row } from '../../support/delta-rig.ts'
import { backup, diskTable, logEntries, type SeenTable, tableRows } from '../../support/delta-table.ts'
import { failingTable, type Mishap } from '../../support/failing-table.ts'

const columns = { epoch: 'long', n: 'long' } as const
const rowsOf = (epoch: number): Row[] => [0, 1, 2].map((n) => ({ epoch, n }))
/** What a reader must see after these epochs. */
const shownOf = (...epochs: number[]) =>
  epochs.flatMap((epoch) => [0n, 1n, 2n].map((n) => ({ epoch: BigInt(epoch), n })))

function freshTable() {
  const seen = diskTable()
  onTestFinished(seen.dispose)
  return seen
}

async function failingRig(seen: SeenTable, checkpointEvery = 100) {
  const failing = failingTable(diskTableFiles(seen.table))
  const rig = await deltaRig({ table: seen.table, columns, checkpointEvery }, () => failing.files)
  return { failing, rig }
}

/** Repeats as the engine does: promotes until the marker says that it is done. */
async function insist(rig: DeltaRig, epoch: number, committable: Parameters<DeltaRig['promote']>[0]): Promise<void> {
  for (let tries = 0; tries < 5; tries++) {
    const answer = await rig.promote(committable).catch(() => null)
    if (answer?.result === 'promoted') return
    if (answer?.result === 'refused') return expect(answer.found).toEqual(rig.driver.markerOf(epoch))
    await rig.restart()
  }
  throw new Error(`epoch ${epoch} was never promoted`)
}

/** Commits two epochs while call `index` of the second promotion meets the mishap; null: there is no such call. */
async function disturbed(index: number, mishap: Mishap): Promise<string | null> {
  const seen = freshTable()
  const { failing, rig } = await failingRig(seen, 4)
  await rig.driver.register()
  await rig.run(1, rowsOf(1))
  const [second] = await rig.commit(2, rowsOf(2))
  failing.restart()
  failing.arm(index, mishap)
  const first = await rig.promote(second!).catch(() => null)
  const met = failing.calls[index] ?? null
  if (met === null) return null
  failing.restart()
  await rig.restart()
  if (first === null) await insist(rig, 2, second!)
  expect(await rig.driver.sink.marker(0)).toEqual(rig.driver.markerOf(2))
  const entries = (await logEntries(seen)).flat().filter(({ add }) => add !== undefined)
  expect(entries, `${mishap} at ${met}`).toHaveLength(2)
  expect(await tableRows(seen)).toEqual(shownOf(1, 2))
  await rig.run(3, rowsOf(3))
  expect(await tableRows(seen)).toEqual(shownOf(1, 2, 3))
  return met
}

test.each<Mishap>(['crash before', 'crash after', 'answer lost', 'never sent'])(
  'case 2: promotes once, with all of its files there, whatever call meets this: %s',
  async (mishap) => {
    const met: string[] = []
    for (let index = 0; ; index++) {
      const call = await disturbed(index, mishap)
      if (call === null) break
      met.push(call.replace(/pawl-.*/, 'rows'))
    }
    expect(met).toContain('create rows')
    expect(met).toContain(`create ${entryName(4)}`)
    expect(met).toContain('create _delta_log/00000000000000000004.checkpoint.parquet')
    expect(met).toContain('replace _delta_log/_last_checkpoint')
  },
)

test('creates the table once when the answer is lost or the process dies', async () => {
  for (const mishap of ['crash before', 'crash after', 'answer lost', 'never sent'] as const) {
    for (let index = 0; index < 3; index++) {
      const seen = freshTable()
      const { failing, rig } = await failingRig(seen)
      failing.arm(index, mishap)
      await rig.driver.register().catch(() => undefined)
      failing.restart()
      await rig.restart()
      await rig.driver.register()
      await rig.run(1, rowsOf(1))
      const protocols = (await logEntries(seen)).flat().filter(({ protocol }) => protocol !== undefined)
      expect(protocols, `${mishap} at ${index}`).toHaveLength(1)
      expect(await tableRows(seen)).toEqual(shownOf(1))
    }
  }
})

test('puts a data file there again that was cleaned up before the log named it', async () => {
  const seen = freshTable()
  const { failing, rig } = await failingRig(seen)
  await rig.driver.register()
  const [first] = await rig.commit(1, rowsOf(1))
  failing.before = (call) => {
    if (call === `create ${entryName(3)}`) throw new Error('the process is gone')
  }
  await expect(rig.promote(first!)).rejects.toThrow('the process is gone')
  failing.before = null
  const orphans = (await seen.names()).filter((name) => name.startsWith('pawl-'))
  expect(orphans).toHaveLength(1)
  await seen.remove(orphans[0]!)
  expect(await rig.promote(first!)).toEqual({ result: 'promoted' })
  expect(await tableRows(seen)).toEqual(shownOf(1))
})

test('case 14: leaves nothing in the table of an attempt that failed', async () => {
  const seen = freshTable()
  const { rig } = await failingRig(seen)
  await rig.driver.register()
  const before = await seen.names()
  const writer = await rig.driver.sink.stage(rig.driver.context(1))
  writer.add(null, { epoch: 1, n: 1 }, 0, 0)
  await writer.flush()
  await writer.seal()
  expect(await seen.names()).toEqual(before)
})

test('takes the next number when another writer was faster, and sees what that one changed', async () => {
  const seen = freshTable()
  const { failing, rig } = await failingRig(seen)
  await rig.driver.register()
  const [first] = await rig.commit(1, rowsOf(1))
  let rivals = 0
  failing.before = async (call) => {
    const version = Number(/create _delta_log\/(\d{20})\.json/.exec(call)?.[1] ?? Number.NaN)
    if (Number.isNaN(version) || rivals === 3) return
    rivals++
    const fields = (await logEntries(seen)).flat().find(({ metaData }) => metaData !== undefined)?.metaData
    const schema = JSON.parse(String(fields?.schemaString))
    schema.fields.push({ name: `rival${rivals}`, type: 'string', nullable: true, metadata: {} })
    const changed = { metaData: { ...fields, schemaString: JSON.stringify(schema) } } as never
    await seen.write(entryName(version), entryBytes([changed]))
  }
  expect(await rig.promote(first!)).toEqual({ result: 'promoted' })
  expect(rivals).toBe(3)
  expect(await tableRows(seen)).toEqual(shownOf(1))
  expect((await logEntries(seen)).at(-1)?.some(({ metaData }) => metaData !== undefined)).toBe(false)
})

test('parks when another writer changed the table so that the rows do not fit, before they are visible', async () => {
  const seen = freshTable()
  const { failing, rig } = await failingRig(seen)
  await rig.driver.register()
  const [first] = await rig.commit(1, rowsOf(1))
  failing.before = async (call) => {
    if (call !== `create ${entryName(3)}`) return
    failing.before = null
    const protocol = { minReaderVersion: 2, minWriterVersion: 5 }
    await seen.write(entryName(3), entryBytes([{ protocol }]))
  }
  await expect(rig.promote(first!)).rejects.toMatchObject({
    code: 'SINK_SCHEMA_INVALID',
    message: expect.stringMatching(/sink rows, lane 0, epoch 1: .*reader version 2, writer version 5/),
  })
  expect(await tableRows(seen)).toEqual([])
  await seen.write(entryName(4), entryBytes([{ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }]))
  expect(await rig.promote(first!)).toEqual({ result: 'promoted' })
  expect(await tableRows(seen)).toEqual(shownOf(1))
})

test('a process that remembers a table notices that an older log was put back, and heals it', async () => {
  const seen = freshTable()
  const { rig } = await failingRig(seen)
  await rig.driver.register()
  await rig.run(1, rowsOf(1))
  const restore = await backup(seen)
  const lost = [...(await rig.run(2, rowsOf(2))), ...(await rig.run(3, rowsOf(3)))]
  await restore()
  const [fourth] = await rig.commit(4, rowsOf(4))
  expect(await rig.promote(fourth!)).toEqual({ result: 'refused', found: rig.driver.markerOf(1) })
  for (const committable of [...lost, fourth!]) {
    expect(await rig.driver.promote(committable, { healing: true })).toEqual({ result: 'promoted' })
  }
  expect(await tableRows(seen)).toEqual(shownOf(1, 2, 3, 4))
})

test('never fills a hole: entries that were cleaned up are not free numbers', async () => {
  const seen = freshTable()
  const { rig } = await failingRig(seen)
  await rig.driver.register()
  await rig.run(1, rowsOf(1))
  const idle = await deltaRig({ table: seen.table, columns }, () => diskTableFiles(seen.table))
  await idle.driver.sink.marker(0)
  await rig.restart({ checkpointEvery: 5 })
  for (const epoch of [2, 3, 4]) await rig.run(epoch, rowsOf(epoch))
  for (const version of [0, 1, 2, 3, 4]) await seen.remove(entryName(version))
  expect(await idle.driver.sink.marker(0)).toEqual(rig.driver.markerOf(4))
  await seen.write('_delta_log/_last_checkpoint', Buffer.from('{"version":2}'))
  await rig.restart()
  await rig.run(5, rowsOf(5))
  const names = (await seen.names()).filter((name) => /\.json$/.test(name))
  expect(names).toEqual([entryName(5), entryName(6), entryName(7)])
})

test('refuses a log with a hole', async () => {
  const seen = freshTable()
  const { rig } = await failingRig(seen)
  await rig.driver.register()
  for (const epoch of [1, 2]) await rig.run(epoch, rowsOf(epoch))
  await seen.remove(entryName(3))
  await rig.restart()
  await expect(rig.driver.sink.marker(0)).rejects.toMatchObject({
    code: 'DELTA_LOG_DAMAGED',
    message: expect.stringContaining('entry 3 is missing, 4 is there'),
  })
})

test('refuses a log whose entry or schema is not readable', async () => {
  const seen = freshTable()
  const { rig } = await failingRig(seen)
  await rig.driver.register()
  const [first] = await rig.commit(1, rowsOf(1))
  const [created] = (await logEntries(seen)).flat().filter(({ metaData }) => metaData !== undefined)
  const broken = { ...created!.metaData, schemaString: '{"fie' } as never
  await seen.write(entryName(3), entryBytes([{ metaData: broken }]))
  await expect(rig.promote(first!)).rejects.toMatchObject({
    code: 'DELTA_LOG_DAMAGED',
    message: expect.stringContaining('the schema is not readable'),
  })
  await seen.write(entryName(3), Buffer.from('{"txn":{"appId'))
  await rig.restart()
  await expect(rig.promote(first!)).rejects.toMatchObject({
    code: 'DELTA_LOG_DAMAGED',
    message: expect.stringContaining('entry 3 is not readable'),
  })
})
