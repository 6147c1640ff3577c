import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

function tsc(project: string): string {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', project],
    {
      encoding: 'utf8',
    },
  )
  return (stdout + stderr).replace(/\s+/g, ' ')
}

/** What the compiler says to a pipeline file that begins with the usual imports. */
function complaintsAbout(body: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'pawl-types-'))
  try {
    const imports = `import { deadLetter, json, pipeline, text, topic } from '${root}lib/index.ts'`
    writeFileSync(join(directory, 'pipeline.ts'), `${imports}\nexport default ${body}\nvoid [deadLetter, json, text]`)
    const options = { typeRoots: [join(root, 'node_modules/@types')] }
    writeFileSync(
      join(directory, 'tsconfig.json'),
      JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions: options, include: ['pipeline.ts'] }),
    )
    return tsc(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

test('types flow from source to sink, and what must not compile does not', () => {
  expect(tsc(join(root, 'test/types'))).toBe('')
})

test.each([
  ["pipeline('p').from(topic('t')).map(async (value) => value)", 'a function of a pipeline must be synchronous'],
  [
    "pipeline('p').from(topic('t')).map(() => 'x').to('out', topic('o', { value: json<number>() }))",
    'the value type of the sink does not take the values of the stream',
  ],
  [
    "pipeline('p').from(topic('t')).to('out', topic('o', { key: text() }))",
    'the key type of the sink does not take the keys of the stream',
  ],
  [
    "pipeline('p', { onError: deadLetter('dead', topic('d', { value: text() })) })",
    'the value type of a dead-letter sink must take a RejectedRecord',
  ],
])('the compiler says what is wrong with %s', (body, sentence) => {
  expect(complaintsAbout(body)).toContain(sentence)
})
