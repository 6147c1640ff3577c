import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { bundleFunctions, operateBytesMax } from '../../infra/bundle.ts'
import { functionNames } from '../../infra/function-names.ts'
import { describePipeline } from '../../infra/topology.ts'
import { entry } from './deployment.ts'

const bundles = bundleFunctions(entry)
// Inside the repository, so that `pawl` is found.
const place = mkdtempSync(join(import.meta.dirname, 'bundle-'))
afterAll(() => rmSync(place, { recursive: true }))

function written(name: string, text: string): string {
  const file = join(place, name)
  writeFileSync(file, text)
  return file
}

const textOf = (name: (typeof functionNames)[number]) => {
  const { directory } = bundles[name]
  return readdirSync(directory)
    .map((file) => readFileSync(join(directory, file), 'utf8'))
    .join('\n')
}

describe('bundles', () => {
  test('operate stays within its budget, most of which loads late', () => {
    const { bytes, startBytes } = bundles.operate
    console.log(`operate: ${bytes} of ${operateBytesMax} bytes, ${startBytes} of them at its start`)
    expect(bytes).toBeLessThanOrEqual(1_500_000)
    expect(startBytes).toBeLessThan(300_000)
  })

  test('each function has its entry and no other', () => {
    for (const name of functionNames) {
      const entries = readdirSync(bundles[name].directory).filter((file) =>
        functionNames.some((one) => file === `${one}.mjs`),
      )
      expect(entries).toEqual([`${name}.mjs`])
    }
  })

  test('only what starts runs, and the doctor, has the client of Step Functions', () => {
    const having = functionNames.filter((name) => textOf(name).includes('StartExecution'))
    expect(having).toEqual(['trigger', 'plan', 'doctor'])
  })

  test('the pipeline has one text in all functions, on which its build depends', () => {
    const chunkOf = (name: (typeof functionNames)[number]) =>
      readdirSync(bundles[name].directory).filter((file) =>
        readFileSync(join(bundles[name].directory, file), 'utf8').includes('word-counts'),
      )
    const chunks = functionNames.map(chunkOf)
    expect(new Set(chunks.map(String)).size).toBe(1)
    expect(chunks[0].length).toBe(1)
  })

  test('what does not bundle is told with file and line', () => {
    const file = written('broken.ts', "import { nothing } from './absent.ts'\nexport default nothing\n")
    expect(() => bundleFunctions(file)).toThrow(
      expect.objectContaining({ code: 'DEPLOYMENT_INVALID', message: expect.stringMatching(/broken\.ts:1 .*absent/) }),
    )
  })
})

/** A sentence of each driver's own. */
const drivers = [
  ['postgres', 'SCRAM-SERVER-FINAL-MESSAGE'],
  ['mysql', 'closed state'],
  ['redis', 'Connection is closed.'],
] as const

test.each(drivers)('functions of a pipeline that ends in %s have its driver, which loads late', (kind, sentence) => {
  const options = `{ table: 'lines', prefix: 'lines', connection: '${kind}://a@b/c', row: (line: string) => ({ line }) }`
  const file = written(
    `${kind}.ts`,
    `import { pipeline, text, topic } from 'pawl'
import { ${kind} } from 'pawl/${kind}'
export default pipeline('rows').from(topic('lines', { value: text() })).to('rows', ${kind}(${options} as never))
`,
  )
  const { directory, startBytes } = bundleFunctions(file).promote
  const texts = readdirSync(directory).map((name) => readFileSync(join(directory, name), 'utf8'))
  expect(texts.some((text) => text.includes(sentence))).toBe(true)
  expect(startBytes).toBeLessThan(300_000)
})

describe('reading a pipeline file', () => {
  test('tells topics, sinks and settings without opening anything', () => {
    const { topology, sources, sinks, settings } = describePipeline(entry)
    expect(topology.pipeline).toBe('word-count')
    expect(sources).toEqual([
      {
        id: 'lines',
        topic: 'lines',
        group: null,
        ownCluster: false,
        start: 'earliest',
        isolation: 'read_committed',
        onLostOffsets: 'fail',
      },
    ])
    expect(sinks).toEqual([{ id: 'word-counts', type: 'topic', topics: ['word-counts'], ownCluster: false }])
    expect(settings.checkpoint.intervalMs).toBe(200)
  })

  test('a file may wait at its top level and print what it likes', () => {
    const file = written(
      'waits.ts',
      `import { pipeline, text, topic } from 'pawl'
await Promise.resolve()
console.log('loading')
export default pipeline('waits').from(topic('a', { value: text() })).to('b', topic('b', { value: text() }))
`,
    )
    expect(describePipeline(file).topology.pipeline).toBe('waits')
  })

  test.each([
    ['absent.ts', null, 'PIPELINE_FILE_INVALID', /no such file/],
    ['throws.ts', "throw new Error('not today')", 'PIPELINE_FILE_INVALID', /not today/],
    ['empty.ts', 'export const a = 1', 'PIPELINE_FILE_INVALID', /undefined/],
    [
      'unfinished.ts',
      "import { pipeline } from 'pawl'\nexport default pipeline('Bad Id')",
      'PIPELINE_INVALID',
      /there is no source/,
    ],
  ])('%s is refused with a code', (name, text, code, message) => {
    const file = text === null ? join(place, name) : written(name, text)
    expect(() => describePipeline(file)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    )
  })
})
