/**
 * Child processes for tests: TypeScript files run by this Node, whose lines are collected as they come.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface Child {
  readonly pid: number
  /** Whole lines printed so far; grows. */
  readonly lines: readonly string[]
  /** Resolves when the process has ended and all of its lines are there. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>
  kill(signal: NodeJS.Signals): void
}

/** Starts `file` with arguments; what it prints on its error output goes to ours. */
export function startChild(file: URL, args: readonly string[]): Child {
  const child = spawn(process.execPath, [file.pathname, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop()!
    lines.push(...parts)
  })
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  return { pid: child.pid!, lines, ended, kill: (signal) => child.kill(signal) }
}
