/**
 * Rows on their way through the store: JSON lines, one object a lane and flush, and from there to arguments of the
 * script.
 *
 * A line is `[member, value, number]`: text, `{"base64": …}`, or null for none; the number is a score or a
 * timestamp. The member is the field of a hash, the end of a string's key, the member of a set.
 */
import { PawlError } from '../../model/errors.ts'
import type { Committable } from '../../model/manifest.ts'
import type { Serde } from '../../model/serde.ts'
import type { StageContext, StageWriter } from '../../ports/sink.ts'
import type { Store } from '../../ports/store.ts'
import { type Cell, cellOf, contentOf } from '../shared/content-cells.ts'
import { lineStageWriter, readLines } from '../shared/lane-lines.ts'
import { laneOf } from '../shared/lanes.ts'
import { type Content, encodeKey, encodeValue } from '../shared/row-encoding.ts'
import type { RedisType } from './script.ts'

/** What becomes of rows; kept in the staged parts, so that promotion does not depend on the pipeline file. */
export interface RedisForm {
  readonly version: 1
  readonly type: RedisType
  /** The key, or for `string` what all keys begin with. */
  readonly key: string
  /** Of a stream: when its rows were staged, by the clock of the writer; the time in the ids of the entries. */
  readonly stagedAtMs?: number
}

/** How a pipeline file makes rows of values. */
export interface RedisMaker {
  readonly keySerde: Serde<unknown>
  readonly valueSerde: Serde<unknown>
  readonly member: ((value: unknown, key: unknown) => string) | null
  readonly score: ((value: unknown, key: unknown) => number) | null
}

type Line = readonly [member: Cell, value: Cell, number: number]

/** A writer for one invocation. */
export function redisStageWriter(context: StageContext, form: RedisForm, maker: RedisMaker): StageWriter {
  const handle: RedisForm = form.type === 'stream' ? { ...form, stagedAtMs: Date.now() } : form
  return lineStageWriter(context, handle, (put, key, value, timestampMs, partition) => {
    const member = memberOf(form, maker, key, value)
    const line = `${JSON.stringify(lineOf(form, maker, member, key, value, timestampMs))}\n`
    put(laneOf(member, partition, context.lanes), line)
  })
}

function memberOf({ type }: RedisForm, { keySerde, member }: RedisMaker, key: unknown, value: unknown): Content {
  const made = member !== null && value !== null ? member(value, key) : encodeKey(keySerde, key)
  if (made !== null || type === 'stream') return made
  throw new PawlError('ENCODE_FAILED', `a row without a key has no place in a ${type}`, { type })
}

function lineOf(
  { type }: RedisForm,
  { valueSerde, score }: RedisMaker,
  member: Content,
  key: unknown,
  value: unknown,
  timestampMs: number,
): Line {
  const deleted = type !== 'stream' && (value === null || value === undefined)
  if (deleted) return [cellOf(member), null, timestampMs]
  if (type === 'set') return [cellOf(member), '', timestampMs]
  if (type !== 'sorted-set') return [cellOf(member), cellOf(encodeValue(valueSerde, value)), timestampMs]
  const made = score === null ? value : score(value, key)
  if (typeof made !== 'number' || Number.isNaN(made))
    throw new PawlError('ENCODE_FAILED', `the score of a member is ${String(made)}, not a number`)
  return [cellOf(member), String(made), timestampMs]
}

/** Keys and arguments of the script, without the markers. */
export interface ScriptRows {
  readonly keys: (string | Buffer)[]
  readonly args: (string | Buffer)[]
}

/** The rows of a committable, in order. Throws `OBJECT_MISSING`, `OBJECT_DAMAGED`. */
export async function readScriptRows(store: Store, committable: Committable): Promise<[RedisForm, ScriptRows]> {
  const form = committable.parts[0]?.handle as RedisForm | undefined
  if (form?.version !== 1) {
    const { sink } = committable
    throw new PawlError('STEP_INPUT_INVALID', `staged output of sink ${sink} is of another version`, { sink })
  }
  const rows: ScriptRows = {
    keys: form.type === 'string' ? [] : [form.key],
    args: form.type === 'stream' ? [String(form.stagedAtMs ?? 1)] : [],
  }
  await readLines(store, committable, (line) => addRow(rows, form, JSON.parse(line) as Line))
  return [form, rows]
}

function addRow({ keys, args }: ScriptRows, { type, key }: RedisForm, [member, value, number]: Line): void {
  const op = value === null ? '0' : '1'
  const name = contentOf(member) ?? ''
  const content = contentOf(value) ?? ''
  switch (type) {
    case 'string':
      keys.push(typeof name === 'string' ? key + name : Buffer.concat([Buffer.from(key), name]))
      args.push(op, content)
      break
    case 'set':
      args.push(op, name)
      break
    case 'stream':
      args.push(String((member === null ? 0 : 1) + (value === null ? 0 : 2)), name, content, String(number))
      break
    default:
      args.push(op, name, content)
  }
}
