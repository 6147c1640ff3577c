/**
 * Window specs: how a keyed stream is cut by event time.
 *
 * Plain data. Negative timestamps are legal: a window starts at the floor of its size, never at the next one.
 */
import type { TumblingWindow } from './language.ts'

/** Windows `[n·sizeMs, (n+1)·sizeMs)`; late records are taken until `allowedLatenessMs` after the end. */
export function tumbling(options: { readonly sizeMs: number; readonly allowedLatenessMs?: number }): TumblingWindow {
  return Object.freeze({ kind: 'tumbling', sizeMs: options.sizeMs, allowedLatenessMs: options.allowedLatenessMs ?? 0 })
}

/** Start of the window that holds `timestampMs`, by floor arithmetic: −1 lies in `[−sizeMs, 0)`. */
export function windowStartOf(timestampMs: number, sizeMs: number): number {
  return Math.floor(timestampMs / sizeMs) * sizeMs
}
