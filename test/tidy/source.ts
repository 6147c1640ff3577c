/**
 * The files that the tidy tests read, parsed once.
 *
 * A real parser is used, since rules judged by pattern are wrong in strings and comments. Paths are relative to
 * the repository, with `/`; lines count from 1.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Comment, parseSync } from 'oxc-parser'

export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

/** One import, export-from or `import()` of a module. */
export interface Edge {
  readonly to: string
  readonly line: number
  /** Gone after compilation. */
  readonly typeOnly: boolean
  /** Loaded when it is reached, by `import()`. */
  readonly lazy: boolean
}

export interface Source {
  readonly path: string
  readonly text: string
  readonly lines: number
  readonly program: Node
  readonly comments: readonly Comment[]
  readonly edges: readonly Edge[]
  lineOf(position: number): number
}

const root = new URL('../../', import.meta.url).pathname

/** Paths of all files below `folder` that end in `ending`, sorted; none when there is no such folder. */
export function filesBelow(folder: string, ending: string): string[] {
  try {
    return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
      .filter((path) => !/(^|\/)(node_modules|dist|target)\//.test(path))
      .sort()
  } catch {
    return []
  }
}

/** Text of a file of the repository. */
export function textOf(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

const parsed = new Map<string, Source>()

/** All TypeScript files below the given folders. */
export function sources(...folders: string[]): Source[] {
  return folders.flatMap((folder) => filesBelow(folder, '.ts')).map((path) => source(path))
}

function source(path: string): Source {
  const known = parsed.get(path)
  if (known) return known
  const text = textOf(path)
  const { program, comments, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path} does not parse: ${errors[0]?.message}`)
  const starts = [0, ...[...text.matchAll(/\n/g)].map((match) => match.index + 1)]
  const lineOf = (position: number) => starts.findLastIndex((start) => start <= position) + 1
  const tree = program as unknown as Node
  const made: Source = {
    path,
    text,
    lines: text.endsWith('\n') ? starts.length - 1 : starts.length,
    program: tree,
    comments,
    edges: edgesOf(tree, lineOf),
    lineOf,
  }
  parsed.set(path, made)
  return made
}

/** Calls `visit` for each node below `node`, parents first. `parents` are the nodes around it, outermost first. */
export function walk(node: Node, visit: (node: Node, parents: readonly Node[]) => void, parents: Node[] = []): void {
  visit(node, parents)
  parents.push(node)
  for (const child of childrenOf(node)) walk(child, visit, parents)
  parents.pop()
}

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flatMap((value) => (Array.isArray(value) ? value : [value]))
    .filter((value): value is Node => typeof value === 'object' && value !== null && 'type' in value)
}

function edgesOf(program: Node, lineOf: (position: number) => number): Edge[] {
  const edges: Edge[] = []
  walk(program, (node) => {
    const target = node.source as Node | null | undefined
    if (!target || typeof target.value !== 'string') return
    const lazy = node.type === 'ImportExpression'
    if (!lazy && !/^(Import|Export\w+)Declaration$/.test(node.type)) return
    edges.push({ to: target.value, line: lineOf(node.start), typeOnly: isTypeOnly(node), lazy })
  })
  return edges
}

function isTypeOnly(node: Node): boolean {
  if (node.importKind === 'type' || node.exportKind === 'type') return true
  const names = (node.specifiers ?? []) as Node[]
  return names.length > 0 && names.every((name) => name.importKind === 'type' || name.exportKind === 'type')
}
