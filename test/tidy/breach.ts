/**
 * Breaches of the house rules, and the ratchet.
 *
 * A breach that is not listed in `breaches.json` fails, and so does a listed one that is gone: the list may only
 * shrink. Listed breaches are named by rule, file and subject, never by line, since lines move.
 */
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'

/** One place that breaks a rule. */
export interface Breach {
  readonly file: string
  readonly line: number
  readonly rule: string
  /** What is at fault: a name, or another file. */
  readonly subject: string
  /** What to do about it. */
  readonly remedy: string
}

const listed: Record<string, string[]> = JSON.parse(readFileSync(new URL('./breaches.json', import.meta.url), 'utf8'))

/** Fails unless the breaches of `rule` are exactly the listed ones. */
export function expectNone(rule: string, breaches: readonly Breach[]): void {
  const known = new Set(listed[rule] ?? [])
  const met = new Set(breaches.map(nameOf))
  const complaints = [
    ...breaches
      .filter((breach) => !known.has(nameOf(breach)))
      .map((breach) => `${breach.file}:${breach.line} ${breach.rule}: ${breach.subject}. ${breach.remedy}`),
    ...[...known]
      .filter((name) => !met.has(name))
      .map((name) => `test/tidy/breaches.json ${rule}: "${name}" is mended. Remove it from the list.`),
  ]
  expect(complaints).toEqual([])
}

function nameOf(breach: Breach): string {
  return `${breach.file}: ${breach.subject}`
}
