/**
 * Staging of a Delta sink: rows become Parquet files, which wait in the store until their epoch is committed.
 *
 * A flush makes one file a lane and partition. A file has its final name in the table from the start, a random one, so
 * that a promotion that is repeated or comes twice puts the same file in the same place. What the log will say of it
 * (rows, statistics, partition) travels in the staged part: promotion decodes nothing.
 */
import { randomBytes } from 'node:crypto'
import { PawlError } from '../../model/errors.ts'
import type { Committable, StagedPart } from '../../model/manifest.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import { laneOf } from '../shared/lanes.ts'
import { type Cell, type CellMaker, cellBytes, cellMaker, type ParquetColumn } from '../shared/parquet-columns.ts'
import { loadParquetWriter, parquetFile } from '../shared/parquet-file.ts'
import { createStaged, stagedName } from '../shared/staged-objects.ts'
import { cellRefused, laneText } from '../shared/table-rows.ts'
import type { TableForm } from './schema.ts'
import { plainText, statsJson } from './stats.ts'

/** What the log will say of one staged file; in the order of the part's objects. */
export interface StagedFile {
  /** In the table. */
  readonly name: string
  readonly stats: string
  readonly partitionValues: Readonly<Record<string, string | null>>
  readonly stagedAtMs: number
}

/** What a staged part tells of itself; version 1. */
export interface DeltaHandle {
  readonly version: 1
  readonly form: TableForm
  readonly files: readonly StagedFile[]
}

/** How a pipeline file makes rows of values. */
export type DeltaRow = (value: never, key: never, timestampMs: number) => object

interface OpenFile {
  readonly partitionValues: Readonly<Record<string, string | null>>
  readonly directory: string
  /** One array a column of the files. */
  readonly cells: Cell[][]
  rows: number
}

interface LaneFiles {
  readonly open: Map<string, OpenFile>
  readonly files: StagedFile[]
  readonly objects: StagedPart['objects'][number][]
  rows: number
}

/** Columns of a sink, made ready once. */
export interface RowPlan {
  readonly form: TableForm
  readonly names: ReadonlySet<string>
  readonly fileColumns: readonly ParquetColumn[]
  readonly makers: readonly CellMaker[]
  readonly partitionColumns: readonly ParquetColumn[]
  readonly partitionMakers: readonly CellMaker[]
}

/** The plan of a form. */
export function rowPlan(form: TableForm): RowPlan {
  const fileColumns = form.columns.filter(({ name }) => !form.partitionBy.includes(name))
  const partitionColumns = form.partitionBy.map((of) => form.columns.find(({ name }) => name === of)!)
  return {
    form,
    names: new Set(form.columns.map(({ name }) => name)),
    fileColumns,
    makers: fileColumns.map(cellMaker),
    partitionColumns,
    partitionMakers: partitionColumns.map(cellMaker),
  }
}

/** A writer for one invocation. Throws `PACKAGE_MISSING`. */
export async function deltaStageWriter(context: StageContext, plan: RowPlan, row: DeltaRow): Promise<StageWriter> {
  const parquet = await loadParquetWriter()
  const makeRow = row as (value: unknown, key: unknown, timestampMs: number) => unknown
  const lanes = new Map<number, LaneFiles>()
  const scratch: Cell[] = plan.fileColumns.map(() => null)
  let bufferedBytes = 0
  const stageFile = async (lane: number, into: LaneFiles, file: OpenFile) => {
    const bytes = parquetFile(parquet, plan.fileColumns, file.cells)
    const { store } = context
    into.objects.push(await createStaged(store, stagedName(context, `${lane}-${into.objects.length}`), [bytes]))
    const { partitionValues, directory, cells, rows } = file
    const stats = statsJson(plan.fileColumns, cells, rows)
    const name = `${directory}${newFileName(context.epoch, lane)}`
    into.files.push({ name, stats, partitionValues, stagedAtMs: Date.now() })
  }
  const flush = async () => {
    for (const [lane, into] of lanes) {
      for (const [id, file] of into.open) {
        await stageFile(lane, into, file)
        into.open.delete(id)
      }
    }
    bufferedBytes = 0
  }
  return {
    get bufferedBytes() {
      return bufferedBytes
    },
    add(key, value, timestampMs, partition) {
      const made = checkedRow(makeRow(value, key, timestampMs), plan.names)
      let bytes = 0
      for (let i = 0; i < scratch.length; i++) {
        scratch[i] = plan.makers[i]!(made[plan.fileColumns[i]!.name])
        bytes += cellBytes(scratch[i]!)
      }
      const values = plan.partitionColumns.map((column, i) => partitionText(column, plan.partitionMakers[i]!, made))
      const lane = laneOf(laneText(key), partition, context.lanes)
      const file = openFile(lanes, lane, values, plan)
      for (let i = 0; i < scratch.length; i++) file.cells[i]!.push(scratch[i]!)
      file.rows++
      lanes.get(lane)!.rows++
      bufferedBytes += bytes
    },
    flush,
    async seal() {
      await flush()
      return [...lanes].sort(([a], [b]) => a - b).map(([lane, into]) => partOf(lane, into, plan.form))
    },
  }
}

function partOf(lane: number, { rows, objects, files }: LaneFiles, form: TableForm): StagedPart {
  const handle: DeltaHandle = { version: 1, form, files }
  return { lane, rows, bytes: objects.reduce((sum, { bytes }) => sum + bytes, 0), objects, handle }
}

/** The handle of a part. Throws `STEP_INPUT_INVALID` for one of another version. */
export function handleOf({ handle }: StagedPart, { sink }: Committable): DeltaHandle {
  const found = handle as DeltaHandle
  if (found?.version === 1) return found
  throw new PawlError('STEP_INPUT_INVALID', `staged output of sink ${sink} is of another version`, { sink })
}

function openFile(
  lanes: Map<number, LaneFiles>,
  lane: number,
  values: readonly (string | null)[],
  plan: RowPlan,
): OpenFile {
  let into = lanes.get(lane)
  if (into === undefined) {
    into = { open: new Map(), files: [], objects: [], rows: 0 }
    lanes.set(lane, into)
  }
  const id = values.length === 0 ? '' : JSON.stringify(values)
  const found = into.open.get(id)
  if (found !== undefined) return found
  const pairs = plan.form.partitionBy.map((name, i) => [name, values[i]!] as const)
  const made: OpenFile = {
    partitionValues: Object.fromEntries(pairs),
    directory: pairs.map(([name, value]) => `${directoryName(name, value)}/`).join(''),
    cells: plan.fileColumns.map(() => []),
    rows: 0,
  }
  into.open.set(id, made)
  return made
}

function checkedRow(made: unknown, names: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  if (typeof made !== 'object' || made === null || Array.isArray(made)) {
    const what = made === null ? 'null' : Array.isArray(made) ? 'an array' : `a ${typeof made}`
    throw new PawlError('ENCODE_FAILED', `a row is ${what} in place of an object of columns`)
  }
  for (const name in made) if (!names.has(name)) throw cellRefused(name, 'the sink has no such column')
  return made as Readonly<Record<string, unknown>>
}

/** The value of a partition as the log says it. */
function partitionText(
  { name, type }: ParquetColumn,
  make: CellMaker,
  row: Readonly<Record<string, unknown>>,
): string | null {
  const cell = make(row[name])
  if (cell === null) return null
  if (cell === '') throw cellRefused(name, 'readers take an empty text of a partition for null')
  const text = plainText(cell, type)
  if (text === undefined) throw cellRefused(name, 'the year has more than four digits')
  return text
}

/** A directory a partition is custom only: readers take the values from the log. */
function directoryName(name: string, value: string | null): string {
  const plain = (text: string) => text.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 100)
  return `${plain(name)}=${value === null ? '__HIVE_DEFAULT_PARTITION__' : plain(value)}`
}

function newFileName(epoch: number, lane: number): string {
  return `pawl-${String(epoch).padStart(12, '0')}-${lane}-${randomBytes(12).toString('hex')}.snappy.parquet`
}
