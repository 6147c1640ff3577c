/**
 * Heads and history as items: JSON text with what conditions and checks need beside it.
 *
 * The text is kept whole, since a head must come back exactly as it was written. Beside it stand the revision, on
 * which every write is conditional, and the random id of the write, by which a writer knows its own. A CRC-32 tells
 * an item that a person or a tool has changed.
 */
import { crc32 } from 'node:zlib'
import { PawlError } from '../../model/errors.ts'
import type { Head, HistoryItem } from '../../model/head.ts'
import { limits } from '../../model/limits.ts'
import { headKey, historyKey, listedKey } from './client.ts'

/** Version of the items; grows with every change that an older Pawl would misread. */
const itemVersion = 1

/** Attributes as the service gives them. */
export type Attributes = Readonly<Record<string, { readonly S?: string; readonly N?: string }>>

/** Names and numbers beside the text, and what the service itself counts: an upper estimate. */
const overheadBytes = 400

function textAttributes(value: unknown, pipeline: string) {
  const text = JSON.stringify(value)
  const bytes = Buffer.byteLength(text) + 3 * Buffer.byteLength(pipeline) + overheadBytes
  if (bytes > limits.itemBytesMax) {
    throw new PawlError('HEAD_TOO_LARGE', `${pipeline} with ${bytes} of ${limits.itemBytesMax} bytes`, {
      pipeline,
      bytes,
    })
  }
  return { text: { S: text }, crc: { N: `${crc32(text)}` }, version: { N: `${itemVersion}` } }
}

/** The item of a head. Throws `HEAD_TOO_LARGE`. */
export function headItem(head: Head) {
  const attributes = textAttributes(head, head.pipeline)
  return {
    ...headKey(head.pipeline),
    revision: { N: `${head.revision}` },
    write: { S: head.write },
    ...attributes,
  }
}

/** The item of a committed epoch. */
export function historyItem(pipeline: string, item: HistoryItem) {
  return { ...historyKey(pipeline, item.epoch), ...textAttributes(item, pipeline) }
}

/** The item that lists a pipeline. */
export const listedItem = (pipeline: string) => ({ ...listedKey(pipeline) })

/** The head of an item. Throws `LEDGER_DAMAGED`, `LEDGER_TOO_NEW`. */
export function headOf(item: Attributes, pipeline: string, table: string): Head {
  const head = parsed(item, `the head of ${pipeline}`, table) as Head
  if (head.pipeline === pipeline && `${head.revision}` === item.revision?.N) return head
  throw damaged(`the head of ${pipeline} lies under a wrong key`, table)
}

/** The epoch of an item. Throws `LEDGER_DAMAGED`, `LEDGER_TOO_NEW`. */
export function epochOf(item: Attributes, epoch: number, pipeline: string, table: string): HistoryItem {
  const found = parsed(item, `epoch ${epoch} of ${pipeline}`, table) as HistoryItem
  if (found.epoch === epoch) return found
  throw damaged(`epoch ${epoch} of ${pipeline} lies under a wrong key`, table)
}

function parsed(item: Attributes, what: string, table: string): unknown {
  const { text, crc, version } = item
  const stored = Number(version?.N)
  if (stored > itemVersion) {
    const fault = `${what} in table ${table} has version ${stored}, this Pawl knows ${itemVersion}`
    throw new PawlError('LEDGER_TOO_NEW', fault, { table, version: stored, known: itemVersion })
  }
  if (text?.S === undefined || `${crc32(text.S)}` !== crc?.N) {
    throw damaged(`${what} does not match its checksum`, table)
  }
  return JSON.parse(text.S)
}

/** What contradicts itself in the table. */
export function damaged(what: string, table: string): PawlError {
  return new PawlError('LEDGER_DAMAGED', `${what} in table ${table}`, { table })
}
