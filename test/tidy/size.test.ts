import { test } from 'vitest'
import { type Breach, expectNone } from './breach.ts'
import { type Node, type Source, sources, walk } from './source.ts'

const all = sources('lib', 'functions', 'infra', 'test', 'examples', 'bench', 'scripts')
const functionLinesMax = 70
/** Files that are one table, which would not get clearer by being cut. */
const tables = new Set(['lib/model/errors.ts'])

test('no file is longer than 300 lines, no test file than 500', () => {
  const breaches = all.flatMap((file): Breach[] => {
    const max = file.path.startsWith('test/') ? 500 : 300
    if (file.lines <= max || tables.has(file.path)) return []
    const remedy = `It has ${file.lines} lines, ${max} are allowed: split it by subject.`
    return [{ file: file.path, line: max, rule: 'file-length', subject: 'file', remedy }]
  })
  expectNone('file-length', breaches)
})

test('no function has more than 70 lines of its own', () => {
  expectNone('function-length', all.flatMap(longFunctions))
})

/**
 * Lines of a function that belong to no function inside it: a closure that returns a port's methods is as long as
 * what it does itself. Suites of tests are no functions in this sense.
 */
function longFunctions(file: Source): Breach[] {
  const own = new Map<Node, number>()
  const names = new Map<Node, string>()
  walk(file.program, (node, parents) => {
    if (!isFunction(node)) return
    const lines = file.lineOf(node.end) - file.lineOf(node.start) + 1
    own.set(node, (own.get(node) ?? 0) + lines)
    names.set(node, nameOf(node, parents.at(-1)))
    const around = parents.findLast(isFunction)
    if (around) own.set(around, (own.get(around) ?? 0) - Math.max(0, lines - 2))
    if (isSuite(parents.at(-1))) own.delete(node)
  })
  return [...own]
    .filter(([, lines]) => lines > functionLinesMax)
    .map(([node, lines]) => ({
      file: file.path,
      line: file.lineOf(node.start),
      rule: 'function-length',
      subject: names.get(node) ?? 'function',
      remedy: `It has ${lines} lines, ${functionLinesMax} are allowed: give its parts names.`,
    }))
}

function isFunction(node: Node): boolean {
  return /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)
}

/** An argument of `describe(…)`, or of `describe.each(…)(…)` and its like. */
function isSuite(call: Node | undefined): boolean {
  let callee = call?.type === 'CallExpression' ? (call.callee as Node) : undefined
  while (callee && callee.type !== 'Identifier') callee = (callee.callee ?? callee.object) as Node | undefined
  return callee?.name === 'describe'
}

function nameOf(node: Node, parent: Node | undefined): string {
  const named = [node.id, parent?.id, parent?.key] as ({ readonly name?: string } | null | undefined)[]
  return named.find((candidate) => candidate?.name)?.name ?? 'function'
}
