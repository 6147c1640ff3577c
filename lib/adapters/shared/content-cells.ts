/**
 * Keys and values as cells of a JSON line, on their way through the store.
 *
 * Text stays text, bytes are base64 in an object of their own, null is a missing key or a tombstone: what was told
 * apart when it was staged is told apart when it is promoted.
 */
import type { Content } from './row-encoding.ts'

/** What stands in a line for a key or value. */
export type Cell = string | { readonly base64: string } | null

/** The cell of encoded content. */
export function cellOf(content: Content): Cell {
  if (content === null || typeof content === 'string') return content
  return { base64: Buffer.from(content as Uint8Array).toString('base64') }
}

/** The content of a cell. */
export function contentOf(cell: Cell): string | Buffer | null {
  return cell === null || typeof cell === 'string' ? cell : Buffer.from(cell.base64, 'base64')
}
