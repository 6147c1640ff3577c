import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { type Breach, expectNone } from './breach.ts'
import { type Room, roomOf, rooms, tableText, vendors } from './imports.ts'
import { type Edge, type Source, sources, textOf } from './source.ts'

const files = sources('lib', 'functions', 'infra', 'examples')
const byPath = new Map(files.map((file) => [file.path, file]))

test('a file imports only what the table allows its room', () => {
  expectNone('imports', files.flatMap(breachesOf))
})

test('ARCHITECTURE.md shows the import table that is enforced', () => {
  const shown = /<!-- import table -->\n([\s\S]*?)\n<!-- end of import table -->/.exec(textOf('ARCHITECTURE.md'))?.[1]
  expect(shown).toBe(tableText())
})

test('no files import each other in a circle', () => {
  const breaches: Breach[] = []
  const state = new Map<string, 'open' | 'done'>()
  const visit = (file: Source, path: readonly string[]): void => {
    if (state.get(file.path) === 'done') return
    if (state.get(file.path) === 'open') {
      const circle = [...path.slice(path.indexOf(file.path)), file.path].join(' → ')
      const remedy = 'Move what both need into a file of its own.'
      breaches.push({ file: file.path, line: 1, rule: 'cycles', subject: circle, remedy })
      return
    }
    state.set(file.path, 'open')
    for (const edge of file.edges) {
      const target = targetOf(file, edge)
      if (target) visit(target, [...path, file.path])
    }
    state.set(file.path, 'done')
  }
  for (const file of files) visit(file, [])
  expectNone('cycles', breaches)
})

test('importing an entry of the package loads no vendor client', () => {
  const breaches: Breach[] = []
  for (const entry of [
    'lib/index.ts',
    'lib/kafka.ts',
    'lib/mysql.ts',
    'lib/postgres.ts',
    'lib/redis.ts',
    'lib/testing/index.ts',
  ]) {
    const reached = new Set<string>()
    const queue = [byPath.get(entry)].filter((file) => file !== undefined)
    for (const file of queue) {
      if (reached.has(file.path)) continue
      reached.add(file.path)
      for (const edge of file.edges.filter((candidate) => !candidate.typeOnly && !candidate.lazy)) {
        const target = targetOf(file, edge)
        if (target) queue.push(target)
        if (!vendors.includes(packageOf(edge.to))) continue
        const remedy = `Load it with import() when it is first used: ${entry} reaches this file.`
        breaches.push({ file: file.path, line: edge.line, rule: 'lazy', subject: edge.to, remedy })
      }
    }
  }
  expectNone('lazy', breaches)
})

test('every room of the table exists or is about to, and every folder has a row', () => {
  const known = new Set(rooms.map((room) => room.room))
  expect(files.map((file) => roomOf(file.path)).filter((room) => room !== null && !known.has(room))).toEqual([])
})

function breachesOf(file: Source): Breach[] {
  const room = rooms.find((candidate) => candidate.room === roomOf(file.path))
  if (!room) return []
  return file.edges.flatMap((edge) => {
    const reason = refusal(file, edge, room)
    if (reason === null) return []
    const remedy = `${reason} See the import table in ARCHITECTURE.md.`
    return [{ file: file.path, line: edge.line, rule: 'imports', subject: edge.to, remedy }]
  })
}

function refusal(file: Source, edge: Edge, room: Room): string | null {
  if (edge.to.startsWith('.')) {
    const target = roomOf(posix.join(posix.dirname(file.path), edge.to))
    if (target === room.room) return null
    if (target !== null && room.rooms.some((allowed) => matches(allowed, target))) return null
    return `${room.room} may not import from ${target ?? 'outside lib/'}.`
  }
  if (isBuiltin(edge.to)) {
    if (room.builtins === 'all' || room.builtins.includes(edge.to.replace(/^node:/, ''))) return null
    return `${room.room} may not use this built-in module: ask a port.`
  }
  if (room.packages.some((allowed) => matches(allowed, edge.to) || allowed === packageOf(edge.to))) return null
  return `${room.room} may not use this package: a vendor's library stays in its own adapter.`
}

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith('/*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name
}

function packageOf(name: string): string {
  return name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')
}

function targetOf(file: Source, edge: Edge): Source | undefined {
  if (!edge.to.startsWith('.')) return undefined
  return byPath.get(posix.join(posix.dirname(file.path), edge.to))
}
