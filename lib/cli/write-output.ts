/**
 * Where a command writes: results to stdout, errors and remarks to stderr.
 *
 * With `--json` stdout carries JSON alone, one document a line. Colours and thin separators appear on terminals
 * only; `NO_COLOR` takes the colours away.
 */
import type { WriteStream } from 'node:tty'

/** How the output is to look. */
export interface Style {
  /** stdout is a terminal, and not asked for JSON. */
  readonly terminal: boolean
  readonly color: boolean
  readonly nowMs: number
}

/** The two streams of a command. */
export interface Output {
  readonly json: boolean
  readonly terminal: boolean
  readonly color: boolean
  readonly columns: number
  style(): Style
  /** Lines of text to stdout; nothing under `--json`. */
  print(lines: readonly string[]): void
  /** One JSON document to stdout; nothing without `--json`. */
  record(value: unknown): void
  /** Bytes to stdout as they are. */
  raw(text: string): void
  /** One line to stderr. */
  remark(text: string): void
  /** Resolves when stdout took everything. */
  drain(): Promise<void>
}

/** The output of this process. */
export function systemOutput(json: boolean, env: Readonly<Record<string, string | undefined>>): Output {
  const stdout = process.stdout as WriteStream
  const terminal = stdout.isTTY === true && !json
  const color = terminal && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  return {
    json,
    terminal,
    color,
    get columns() {
      return stdout.columns ?? 80
    },
    style: () => ({ terminal, color, nowMs: Date.now() }),
    print(lines) {
      if (!json && lines.length > 0) stdout.write(`${lines.join('\n')}\n`)
    },
    record(value) {
      if (json) stdout.write(`${JSON.stringify(value)}\n`)
    },
    raw: (text) => void stdout.write(text),
    remark: (text) => void process.stderr.write(`${text}\n`),
    drain: () => new Promise((resolve) => stdout.write('', () => resolve())),
  }
}

/** Text in an ANSI style, where there are colours. */
export function styled({ color }: Pick<Style, 'color'>, hue: keyof typeof hues, text: string): string {
  return color ? `\x1b[${hues[hue]}m${text}\x1b[0m` : text
}

const hues = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 }
