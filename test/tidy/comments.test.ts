import { posix } from 'node:path'
import { test } from 'vitest'
import { type Breach, expectNone } from './breach.ts'
import { type Node, type Source, sources } from './source.ts'

const headerLines = { min: 3, max: 14 }

test('every module opens with a comment that says what lives there', () => {
  const files = [...sources('lib', 'functions', 'infra', 'bench', 'scripts', 'test/support'), ...sources('examples')]
  expectNone('header', files.flatMap(missingHeader))
})

test('every export has a docstring', () => {
  expectNone('docstring', sources('lib', 'functions', 'infra').flatMap(missingDocstrings))
})

/** Lines count with the comment's delimiters. */
function missingHeader(file: Source): Breach[] {
  const body = file.text.replace(/^#!.*\n/, '')
  const header = /^\s*\/\*\*[\s\S]*?\*\//.exec(body)?.[0]
  const lines = header ? header.trim().split('\n').length : 0
  if (lines >= headerLines.min && lines <= headerLines.max) return []
  const remedy = `Its header has ${lines} lines, ${headerLines.min} to ${headerLines.max} are wanted: what lives here, why apart, its invariants.`
  return [{ file: file.path, line: 1, rule: 'header', subject: 'header', remedy }]
}

function missingDocstrings(file: Source): Breach[] {
  const seen = new Set<string>()
  const breaches: Breach[] = []
  for (const node of (file.program.body ?? []) as Node[]) {
    const names = exportedNames(node)
    const fresh = names.filter((name) => !seen.has(name) && !isSubject(file, name))
    for (const name of names) seen.add(name)
    if (fresh.length === 0 || hasDocstring(file, node)) continue
    for (const name of fresh) {
      const remedy = 'Say in one sentence what it is, right above it.'
      breaches.push({ file: file.path, line: file.lineOf(node.start), rule: 'docstring', subject: name, remedy })
    }
  }
  return breaches
}

/** The export that the file is named after (`Store` or `MemoryStore` of `store.ts`): the header describes it. */
function isSubject(file: Source, name: string): boolean {
  const subject = posix.basename(file.path, '.ts').replaceAll('-', '')
  return name.toLowerCase().endsWith(subject)
}

/** Names declared by an export statement; none for re-exports, which are documented where they are declared. */
function exportedNames(statement: Node): string[] {
  if (!/^Export(Named|Default)Declaration$/.test(statement.type)) return []
  const declaration = statement.declaration as Node | null
  if (!declaration) return []
  if (declaration.type === 'VariableDeclaration') {
    return (declaration.declarations as Node[]).map((declared) => nameOf(declared.id as Node))
  }
  return [nameOf(declaration.id as Node | null)]
}

function nameOf(identifier: Node | null): string {
  return (identifier?.name as string | undefined) ?? 'default'
}

/** A block comment right above, which is not the header of the file unless nothing else precedes the export. */
function hasDocstring(file: Source, statement: Node): boolean {
  const above = file.comments.findLast((comment) => comment.end <= statement.start)
  if (above?.type !== 'Block' || !above.value.startsWith('*')) return false
  return file.text.slice(above.end, statement.start).trim() === ''
}
