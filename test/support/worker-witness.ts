/**
 * Foreign readers of large outputs: the Java consumer for topics, plain JSON lines for files.
 *
 * Line by line, so that an output of any size fits.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { brokerClassPath } from './kafka-broker.ts'
import type { ShownRow } from './worker-verdict.ts'

const program = fileURLToPath(new URL('Witness.java', import.meta.url))

/** Calls `take` with every record that a `read_committed` Java consumer sees, in the order of each partition. */
export async function witness(
  bootstrap: string,
  topic: string,
  take: (partition: number, key: string | null, value: string | null) => void,
): Promise<void> {
  const java = ['-XX:TieredStopAtLevel=1', '-cp', brokerClassPath, program, 'read', bootstrap, topic]
  const child = spawn('java', java, { stdio: ['ignore', 'pipe', 'ignore'] })
  const closed = once(child, 'close')
  const plain = (base64: string) => (base64 === '-' ? null : Buffer.from(base64, 'base64').toString())
  for await (const line of createInterface(child.stdout)) {
    const [partition, key, value] = line.split('\t')
    take(Number(partition), plain(key), plain(value))
  }
  const [code] = await closed
  if (code !== 0) throw new Error(`the Java consumer ended with ${code}`)
}

/** Rows of each file that a files sink shows, by epoch: names are 12 digits of the epoch, then the lane. */
export function visibleFiles(directory: string): Map<number, ShownRow[]> {
  const epochs = new Map<number, ShownRow[]>()
  for (const name of readdirSync(directory).sort()) {
    if (!name.endsWith('.jsonl')) continue
    const lines = readFileSync(join(directory, name), 'utf8').trimEnd().split('\n')
    const rows = lines.map((line) => {
      const { key, value } = JSON.parse(line) as { key: string; value: number }
      return { word: key, count: value }
    })
    const epoch = Number(name.slice(0, 12))
    epochs.set(epoch, [...(epochs.get(epoch) ?? []), ...rows])
  }
  return epochs
}
