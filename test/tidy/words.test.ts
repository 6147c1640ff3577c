import { existsSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'vitest'
import { type Breach, expectNone } from './breach.ts'
import { filesBelow, textOf } from './source.ts'

const rootFiles = ['.npmrc', '.gitignore', 'biome.json', 'compose.yaml', 'package.json', 'package-lock.json']
const rootUrl = new URL('../../', import.meta.url)
const ownTests = /^test\/tidy\//

interface Rule {
  readonly rule: string
  readonly pattern: RegExp
  readonly remedy: string
  readonly files: RegExp
}

const rules: readonly Rule[] = [
  {
    rule: 'machine-path',
    pattern: /(?<![\w.$}-])\/(home|root|Users|work|tmp|mnt|opt)\/[\w.]+/g,
    remedy: 'A path of one machine means nothing on another: make it relative, or ask os.tmpdir().',
    files: /./,
  },
  {
    rule: 'registry-host',
    pattern: /https?:\/\/[\w.-]*(registry|npmjs|pypi|repo1?\.maven|verdaccio|artifactory)[\w.-]*/gi,
    remedy: 'Where packages come from is the business of each machine: leave the host out.',
    files: /^(?!docs\/)/,
  },
  {
    rule: 'author-talk',
    pattern:
      /\b(this|my|our|earlier|next|previous) session\b|\bsub-?agent|\bas an ai\b|\blanguage model\b|\bTODO\b|\bFIXME\b/gi,
    remedy: 'Text speaks of the product, not of how it came about, and nothing is left for later in a comment.',
    files: /./,
  },
]

const documents = ['.', 'docs'].flatMap((folder) => (folder === '.' ? rootDocuments() : filesBelow(folder, '.md')))
const code = ['lib', 'functions', 'infra', 'test', 'examples', 'bench', 'scripts'].flatMap((folder) =>
  ['.ts', '.md', '.sh', '.json'].flatMap((ending) => filesBelow(folder, ending)),
)
const all = [...documents, ...rootFiles.filter((file) => existsSync(new URL(file, rootUrl))), ...code]

test.each(rules)('nothing breaks the rule of words: $rule', ({ rule, pattern, remedy, files }) => {
  const breaches = all
    .filter((file) => files.test(file) && !ownTests.test(file))
    .flatMap((file) =>
      matchesOf(file, pattern).map(({ line, text }): Breach => ({ file, line, rule, subject: text, remedy })),
    )
  expectNone(rule, breaches)
})

test('a document or file that a text names exists', () => {
  const breaches = all
    .filter((file) => file.endsWith('.md') || file.endsWith('.ts'))
    .filter((file) => !ownTests.test(file))
    .flatMap((file) =>
      matchesOf(file, /(?<![\w*/{<])(?:[\w.-]+\/)*[\w-]+\.md\b/g)
        .filter(({ text }) => !exists(file, text))
        .map(({ line, text }): Breach => {
          const remedy = 'There is no such document: mend the name, or say it in place.'
          return { file, line, rule: 'dead-link', subject: text, remedy }
        }),
    )
  expectNone('dead-link', breaches)
})

function exists(file: string, named: string): boolean {
  return [posix.join(posix.dirname(file), named), named].some((path) => existsSync(new URL(path, rootUrl)))
}

function matchesOf(file: string, pattern: RegExp): { readonly line: number; readonly text: string }[] {
  return textOf(file)
    .split('\n')
    .flatMap((line, index) => [...line.matchAll(pattern)].map((match) => ({ line: index + 1, text: match[0] })))
}

function rootDocuments(): string[] {
  const names = ['README', 'ARCHITECTURE', 'CONTRIBUTING', 'CHANGELOG', 'SECURITY']
  return names.map((name) => `${name}.md`).filter((file) => existsSync(new URL(file, rootUrl)))
}
