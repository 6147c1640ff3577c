/**
 * Foreign readers and writers of Delta tables: delta-rs and DuckDB in a Python process, from PyPI.
 *
 * For tests and soaks alike, so nothing of a test runner is used here. They are installed once into a virtual environment
 * of the project, as the emulator of AWS is. A process runs one
 * snippet after another; `delta_readers.py` says what snippets can use.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const requirements = here('delta-requirements.txt')
const pinned = readFileSync(requirements, 'utf8').trim().replaceAll('==', '-').replaceAll('\n', '-')
const cache = here(`../../.cache/${pinned}`)

/** What the tests lack, as a sentence; null when the readers can be started. */
export function missingDeltaReaders(): string | null {
  if (existsSync(join(cache, '.complete'))) return null
  try {
    execFileSync('python3', ['-c', 'import ensurepip, venv'], { stdio: 'ignore' })
    return null
  } catch {
    return 'python3 with venv is missing, so no foreign reader of Delta tables was asked'
  }
}

/** A Python process with delta-rs and DuckDB. */
export interface DeltaReaders {
  /** What the snippet leaves in `result`; `args` are its variables. Rejects with the traceback. */
  run<T>(code: string, args?: Readonly<Record<string, unknown>>): Promise<T>
  stop(): void
}

/** Starts a process; it ends with this one. */
export function startDeltaReaders(): DeltaReaders {
  execFileSync('bash', [here('../../scripts/python-venv.sh'), cache, requirements], { stdio: 'inherit' })
  const stdio = ['pipe', 'pipe', 'inherit'] as const
  const python = spawn(join(cache, 'venv/bin/python'), [here('delta_readers.py')], { stdio: [...stdio] })
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  createInterface({ input: python.stdout! }).on('line', (line) => {
    const { id, result, error } = JSON.parse(line) as { id: number; result?: unknown; error?: string }
    const asked = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) asked?.resolve(result)
    else asked?.reject(new Error(error))
  })
  python.on('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`the Python process ended with ${code}`))
  })
  let asked = 0
  return {
    run<T>(code: string, args: Readonly<Record<string, unknown>> = {}) {
      const id = asked++
      return new Promise<T>((resolve, reject) => {
        waiting.set(id, { resolve: resolve as (value: unknown) => void, reject })
        python.stdin!.write(`${JSON.stringify({ id, code, args })}\n`)
      })
    },
    stop() {
      python.kill('SIGKILL')
    },
  }
}
