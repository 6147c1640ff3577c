import { test } from 'vitest'
import { type Breach, expectNone } from './breach.ts'
import { type Node, type Source, sources, walk } from './source.ts'

/** Reads a clock, waits, draws a number or prints: only where the outside world is met. */
const outside = /^lib\/(adapters|cli)\//
/** Reads the environment: only where a process begins. */
const entry = /^lib\/cli\//

/** Contract suites let others go on between two tries, which reads no clock. */
const mayYield = /^lib\/testing\/contracts\//
/** Looks at the process while real servers work, which a busy loop would keep from it. */
const mayWait = 'lib/testing/contracts/held-memory.ts'

const globals: Readonly<Record<string, string>> = {
  performance: 'Ask the Clock port.',
  setTimeout: 'Sleep through the Clock port.',
  setInterval: 'Sleep through the Clock port.',
  setImmediate: 'Sleep through the Clock port.',
  console: 'Return the outcome, or emit a ProgressEvent to Telemetry.',
  fetch: 'Reach the outside world through a port.',
}
const members: Readonly<Record<string, string>> = {
  'Date.now': 'Ask the Clock port.',
  'new Date()': 'Ask the Clock port.',
  'Math.random': 'Ask the Random port, or take a seed.',
  'crypto.randomUUID': 'Ask the Random port.',
  'crypto.getRandomValues': 'Ask the Random port.',
}
const randomNames = new Set(['randomUUID', 'randomBytes', 'randomInt', 'getRandomValues', 'randomFillSync'])

test('clocks, timers, randomness and the console stay in adapters and commands', () => {
  const inside = sources('lib').filter((file) => !outside.test(file.path))
  expectNone('purity', inside.flatMap(breachesOf))
})

test('the environment is read only where a process begins', () => {
  const inside = sources('lib').filter((file) => !entry.test(file.path))
  const breaches = inside.flatMap((file) =>
    usesOf(file)
      .filter((use) => use.name === 'process.env')
      .map((use) => breach(file, use, 'environment', 'Read it in the command and pass it on as an argument.')),
  )
  expectNone('environment', breaches)
})

interface Use {
  readonly name: string
  readonly position: number
}

function breachesOf(file: Source): Breach[] {
  return usesOf(file).flatMap((use) => {
    if (use.name === 'setImmediate' && mayYield.test(file.path)) return []
    if (use.name === 'setTimeout' && file.path === mayWait) return []
    const remedy = globals[use.name] ?? members[use.name] ?? (randomNames.has(use.name) ? 'Ask the Random port.' : null)
    return remedy === null ? [] : [breach(file, use, 'purity', remedy)]
  })
}

/** Globals by name, members of globals as `object.property`, and what is imported from built-in modules. */
function usesOf(file: Source): Use[] {
  const uses: Use[] = []
  walk(file.program, (node, parents) => {
    if (node.type === 'MemberExpression' && !node.computed) {
      const name = `${text(node.object)}.${text(node.property)}`
      uses.push({ name, position: node.start })
    } else if (/^(New|Call)Expression$/.test(node.type) && text(node.callee) === 'Date') {
      if ((node.arguments as Node[]).length === 0) uses.push({ name: 'new Date()', position: node.start })
    } else if (node.type === 'Identifier' && isReference(node, parents.at(-1))) {
      uses.push({ name: text(node), position: node.start })
    } else if (node.type === 'ImportSpecifier' && randomNames.has(text(node.imported))) {
      uses.push({ name: text(node.imported), position: node.start })
    }
  })
  return uses
}

/** False for property names, keys and type names, which only look like the global. */
function isReference(node: Node, parent: Node | undefined): boolean {
  if (!parent) return false
  if (parent.type === 'MemberExpression') return parent.object === node
  if (parent.type === 'TSTypeReference' || parent.type === 'TSQualifiedName') return false
  return parent.key !== node
}

function text(value: unknown): string {
  return typeof value === 'object' && value !== null && 'name' in value ? String(value.name) : ''
}

function breach(file: Source, use: Use, rule: string, remedy: string): Breach {
  return { file: file.path, line: file.lineOf(use.position), rule, subject: use.name, remedy }
}
