/**
 * What readers must have seen of the epochs and appends of `sink-writer.ts`, however often it died.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { openSegmentLog } from '../../../lib/adapters/segments/log.ts'
import { systemRandom } from '../../../lib/adapters/system/random.ts'
import { readAll } from '../../../lib/testing/contracts/log-subject.ts'
import { type CommittedEpoch, lanes, openEpochs, valuesOf } from './sink-epochs.ts'

const isVisible = (name: string) => name.endsWith('.jsonl')
const namesIn = (path: string) => (existsSync(path) ? readdirSync(path).filter(isVisible) : [])

/** A reader that takes files away as soon as it sees them, and never the same one twice. */
export function takeFiles(directory: string, chance: number): void {
  const [rows, taken] = [join(directory, 'rows'), join(directory, 'taken')]
  mkdirSync(taken, { recursive: true })
  for (const name of namesIn(rows)) {
    if (Math.random() >= chance) continue
    expect(existsSync(join(taken, name)), `${name} came back`).toBe(false)
    renameSync(join(rows, name), join(taken, name))
  }
}

/** Promotes what is open, then holds that each committed epoch is visible once, in order and whole. */
export async function checkEpochs(directory: string, promotedMin: number): Promise<number> {
  const epochs = openEpochs(directory)
  const newest = await epochs.newest()
  const visibleBefore = filesOf(directory)
  if (newest !== null) await epochs.promote(newest)
  const files = filesOf(directory)
  const committed = await epochs.all()
  expect(committed.length).toBeGreaterThanOrEqual(promotedMin)
  for (const committedEpoch of committed) checkEpoch(committedEpoch, files, visibleBefore, promotedMin)
  expect([...files.keys()].sort()).toEqual(committed.flatMap(expectedNames).sort())
  await epochs.store.close()
  return committed.length
}

function checkEpoch(
  { epoch, attempt }: CommittedEpoch,
  files: ReadonlyMap<string, string>,
  before: ReadonlyMap<string, string>,
  promotedMin: number,
): void {
  for (let lane = 0; lane < lanes; lane++) {
    const values = valuesOf(epoch, attempt, lane)
    if (values.length === 0) continue
    const name = nameOf(epoch, lane)
    const lines = values.map((value) => `{"key":null,"value":"${value}","timestamp":1}\n`).join('')
    expect(files.get(name), name).toBe(lines)
    if (epoch <= promotedMin) expect(before.has(name), `${name} was promoted and is gone`).toBe(true)
  }
}

const nameOf = (epoch: number, lane: number) => `${String(epoch).padStart(12, '0')}-${lane}-a1b2c3d4.jsonl`

const expectedNames = ({ epoch, attempt }: CommittedEpoch) =>
  [0, 1].filter((lane) => valuesOf(epoch, attempt, lane).length > 0).map((lane) => nameOf(epoch, lane))

/** Files that are visible or were taken, by name; none may be both. */
function filesOf(directory: string): Map<string, string> {
  const files = new Map<string, string>()
  for (const folder of ['rows', 'taken']) {
    for (const name of namesIn(join(directory, folder))) {
      expect(files.has(name), `${name} is there twice`).toBe(false)
      files.set(name, readFileSync(join(directory, folder, name), 'utf8'))
    }
  }
  return files
}

/** Holds that each append that returned is in the log once, at its offset, and that none is there in part. */
export async function checkAppends(directory: string, lines: readonly string[]): Promise<number> {
  const { store } = openEpochs(directory)
  const log = await openSegmentLog(store, 'lines', systemRandom())
  const all = await readAll(log, 0)
  const values = all.map(({ value }) => value!)
  expect(new Set(values).size).toBe(values.length)
  for (let i = 0; i < values.length; i += 2) {
    expect(values.slice(i, i + 2)).toEqual([0, 1].map((half) => values[i]!.replace(/\d$/, `${half}`)))
  }
  for (const [, tag, offset] of lines.map((line) => line.split(' ')).filter(([word]) => word === 'appended')) {
    expect(values[Number(offset)], `append ${tag} is lost`).toBe(`${tag}-0`)
  }
  await store.close()
  return values.length
}

/** The newest epoch that a writer printed as promoted. */
export function promotedOf(lines: readonly string[]): number {
  const promoted = lines.filter((line) => line.startsWith('promoted')).map((line) => Number(line.split(' ')[1]))
  return Math.max(0, ...promoted)
}
