/**
 * A name for this process that no other process ever has, and whether the process of such a name still lives.
 *
 * `linux:HOST:MACHINE:BOOT:NAMESPACE:PID:START`: a process id alone is reused, so the start time in clock ticks
 * since boot stands beside it; ids mean nothing across boots and pid namespaces (containers), so those are there
 * too. Elsewhere `other:HOST:-:-:-:PID:-`, where a reused id reads as running. A wrong `unknown` or `running`
 * costs a wait for the lease; a wrong `gone` must not happen. Source: proc(5).
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { errnoOf } from './disk-errors.ts'

/** What can be said of a process elsewhere; `gone` only when it certainly runs no more. */
export type PlaceStatus = 'running' | 'gone' | 'unknown'

interface Place {
  readonly platform: string
  readonly host: string
  readonly machine: string
  readonly boot: string
  readonly namespace: string
  readonly pid: number
  readonly start: string
}

const absent = '-'

function firstLine(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim() || absent
  } catch {
    return absent
  }
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '') || absent
  } catch {
    return absent
  }
}

/** State letter and start time of a process; null when there is none. Field 2 may hold blanks and brackets. */
function processStat(pid: number): { readonly state: string; readonly start: string } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0]!, start: fields[19]! }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ESRCH') return null
    throw error
  }
}

function observe(): Place {
  const host = hostname().replace(/[^A-Za-z0-9.-]/g, '_')
  const start = process.platform === 'linux' ? processStat(process.pid)?.start : undefined
  if (start === undefined) {
    return {
      platform: 'other',
      host,
      machine: absent,
      boot: absent,
      namespace: absent,
      pid: process.pid,
      start: absent,
    }
  }
  return {
    platform: 'linux',
    host,
    machine: firstLine('/etc/machine-id'),
    boot: firstLine('/proc/sys/kernel/random/boot_id'),
    namespace: pidNamespace(),
    pid: process.pid,
    start,
  }
}

let here: Place | undefined
const thisProcess = () => {
  if (here?.pid !== process.pid) here = observe()
  return here
}

/** This process, as a place that `placeStatus` understands; letters, digits and `.-_:` only. */
export function processPlace(): string {
  const { platform, host, machine, boot, namespace, pid, start } = thisProcess()
  return [platform, host, machine, boot, namespace, pid, start].join(':')
}

function parsePlace(text: string): Place | null {
  const parts = text.split(':')
  const [platform, host, machine, boot, namespace, pid, start] = parts as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  if (parts.length !== 7 || !/^[1-9]\d*$/.test(pid)) return null
  return { platform, host, machine, boot, namespace, pid: Number(pid), start }
}

function signalStatus(pid: number): PlaceStatus {
  try {
    process.kill(pid, 0)
    return 'running'
  } catch (error) {
    return errnoOf(error) === 'ESRCH' ? 'gone' : 'running'
  }
}

/** What follows it in a place tells apart holders within one process, and is nothing to `placeStatus`. */
export const partMark = '#'

/**
 * Whether the process at `place` still lives.
 *
 * `unknown`: another host, another container, or no place of ours. A zombie counts as gone: it runs no more code.
 */
export function placeStatus(place: string): PlaceStatus {
  const there = parsePlace(place.split(partMark, 1)[0])
  const here = thisProcess()
  if (there === null || there.platform !== here.platform || there.host !== here.host) return 'unknown'
  if (there.platform !== 'linux') return signalStatus(there.pid)
  if (there.machine !== here.machine) return 'unknown'
  if (there.boot !== here.boot) return here.machine === absent ? 'unknown' : 'gone'
  if (there.namespace !== here.namespace || there.namespace === absent) return 'unknown'
  const stat = processStat(there.pid)
  return stat === null || stat.start !== there.start || stat.state === 'Z' || stat.state === 'X' ? 'gone' : 'running'
}
