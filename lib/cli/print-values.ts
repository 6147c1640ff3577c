/**
 * Numbers, times and tables as people read them.
 *
 * Times are ISO 8601, ages like `3s ago`. Thousands are separated by a thin space on terminals only, so that piped
 * output can be parsed. Columns are aligned; a column of numbers to the right.
 */
import type { Style } from './write-output.ts'

const thinSpace = '\u202f'

/** A whole number, separated on terminals. */
export function count(style: Pick<Style, 'terminal'>, value: number | bigint | string): string {
  const text = typeof value === 'number' ? Math.round(value).toString() : value.toString()
  return style.terminal ? text.replace(/\B(?=(\d{3})+(?!\d))/g, thinSpace) : text
}

/** `3s ago`, `12m ago`, `5h ago`, `8d ago`; `now` below a second. */
export function age(style: Pick<Style, 'nowMs'>, atMs: number): string {
  const ms = style.nowMs - atMs
  return ms < 1000 ? 'now' : `${duration(ms)} ago`
}

/** `42ms`, `3.1s`, `12s`, `5m`, `3h`, `8d`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`
  if (ms < 120_000) return `${Math.round(ms / 1000)}s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)}m`
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)}h`
  return `${Math.round(ms / 86_400_000)}d`
}

/** Bytes with the unit that fits. */
export function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const step = Math.min(units.length - 1, bytes < 1024 ? 0 : Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** step
  return step === 0 ? `${bytes} B` : `${value.toFixed(value < 10 ? 1 : 0)} ${units[step]}`
}

/** ISO 8601 in UTC; `-` for no time, and the number itself for what no calendar holds. */
export function time(atMs: number | null): string {
  if (atMs === null) return '-'
  return Math.abs(atMs) <= 8.64e15 ? new Date(atMs).toISOString() : String(atMs)
}

/** Rows under a heading; columns whose heading begins with `>` are aligned to the right. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const titles = headings.map((heading) => heading.replace(/^>/, ''))
  const widths = titles.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column].length)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        headings[column].startsWith('>') ? cell.padStart(widths[column]) : cell.padEnd(widths[column]),
      )
      .join('  ')
      .trimEnd()
  return [titles, ...rows].map(line)
}

/** `name  value` lines with the values aligned. */
export function pairs(rows: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`.trimEnd())
}
