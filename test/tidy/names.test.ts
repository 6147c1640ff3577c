import { posix } from 'node:path'
import { test } from 'vitest'
import { type Breach, expectNone } from './breach.ts'
import { bannedWords, exceptions, nounFiles, verbs } from './names.ts'
import { filesBelow, type Node, type Source, sources, walk } from './source.ts'

const folders = ['lib', 'functions', 'infra', 'test', 'examples', 'bench', 'scripts']

test('no name of ours has a part that says nothing', () => {
  expectNone('names', sources(...folders).flatMap(emptyNames))
})

test('file names are kebab-case and have no part that says nothing', () => {
  const breaches = folders
    .flatMap((folder) => filesBelow(folder, '.ts'))
    .flatMap((file): Breach[] => {
      const name = posix.basename(file).replace(/(\.test(-d)?|\.d)?\.ts$/, '')
      if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) return [fileBreach(file, 'Name it in kebab-case.')]
      const empty = name.split('-').find((part) => bannedWords.has(part))
      return empty === undefined || exceptions.some((exception) => exception.names.test(camelCase(name)))
        ? []
        : [fileBreach(file, `"${empty}" says nothing: name what the file is about.`)]
    })
  expectNone('file-names', breaches)
})

test('files of epoch/ and cli/ are verbs', () => {
  const breaches = [...filesBelow('lib/epoch', '.ts'), ...filesBelow('lib/cli', '.ts')]
    .filter((file) => !nounFiles.has(file))
    .filter((file) => !verbs.has(posix.basename(file, '.ts').split('-')[0] ?? ''))
    .map((file) => fileBreach(file, 'Name it by what it does; if the verb is new, add it in test/tidy/names.ts.'))
  expectNone('file-names-verbs', breaches)
})

function emptyNames(file: Source): Breach[] {
  const breaches: Breach[] = []
  const seen = new Set<string>()
  walk(file.program, (node, parents) => {
    for (const declared of declaredNames(node, parents.at(-1))) {
      const name = String(declared.name ?? '')
      const empty = wordsOf(name).find((word) => bannedWords.has(word))
      if (empty === undefined || seen.has(name) || exceptions.some((exception) => exception.names.test(name))) continue
      seen.add(name)
      const remedy = `"${empty}" says nothing: name what it is. Exceptions stand in test/tidy/names.ts.`
      breaches.push({ file: file.path, line: file.lineOf(declared.start), rule: 'names', subject: name, remedy })
    }
  })
  return breaches
}

/** Identifiers that `node` gives a name to. Keys of object literals and destructured names are others' names. */
function declaredNames(node: Node, parent: Node | undefined): Node[] {
  const found: (Node | null | undefined)[] = []
  if (/^(VariableDeclarator|Function\w*|Class\w*|TS(Interface|TypeAlias|Enum)Declaration)$/.test(node.type)) {
    found.push(node.id as Node | null)
  }
  if (/^(TSPropertySignature|TSMethodSignature|PropertyDefinition|MethodDefinition)$/.test(node.type)) {
    found.push(node.key as Node)
  }
  if (Array.isArray(node.params)) found.push(...(node.params as Node[]))
  if (node.type === 'TSTypeParameter') found.push(node.name as Node)
  if (parent?.type === 'ClassBody' && parent.superClass) return []
  return found.filter((candidate): candidate is Node => candidate?.type === 'Identifier')
}

function camelCase(kebab: string): string {
  return kebab.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

function wordsOf(name: string): string[] {
  return name.split(/(?<=[a-z0-9])(?=[A-Z])|[_$-]/).map((word) => word.toLowerCase())
}

function fileBreach(file: string, remedy: string): Breach {
  return { file, line: 1, rule: 'file-names', subject: posix.basename(file), remedy }
}
