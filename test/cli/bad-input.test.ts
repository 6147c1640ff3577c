import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { type ErrorCode, errorRegistry } from '../../lib/model/errors.ts'
import { countedProject, type Ended, linesOf, type Project, project, succeed, wordCount } from './command.ts'

const exits = { COMMAND_INVALID: 2, PIPELINE_PARKED: 3 } as Partial<Record<ErrorCode, number>>
const caughtUp = ['--until', 'caught-up']

/** One sentence on stderr, with the code, what is at fault and the next step; no stack; the exit code of its kind. */
function expectRefusal({ code, stderr, stdout }: Ended, error: ErrorCode, fault: RegExp): void {
  expect(stderr.split('\n')).toHaveLength(2)
  expect(stderr).toMatch(fault)
  expect(stderr.startsWith(`${error}: ${errorRegistry[error].message}: `)).toBe(true)
  expect(stderr.endsWith(`. Next: ${errorRegistry[error].action}.\n`)).toBe(true)
  expect(stderr + stdout).not.toMatch(/^\s+at /m)
  expect(code).toBe(exits[error] ?? 1)
}

/** The pipeline ends parked, and the one error names the code of the reason and its next step as well. */
function expectParked(ended: Ended, reason: ErrorCode, fault: RegExp): void {
  expectRefusal(ended, 'PIPELINE_PARKED', fault)
  expect(ended.stderr).toContain(`${reason}: ${errorRegistry[reason].message}`)
  expect(ended.stderr).toContain(`(${errorRegistry[reason].action})`)
}

/** Reads JSON with a schema of one field. */
const orders = `
import { json, pipeline, text, topic } from 'pawl'
const schema = { '~standard': { version: 1, vendor: 'test', validate: (value) => typeof value?.cents === 'number'
  ? { value } : { issues: [{ message: 'must be a number', path: ['cents'] }] } } }
export default pipeline('orders', { checkpoint: { intervalMs: 0 }, restart: { strategy: 'fixed-delay', attempts: 9, delayMs: 1 } })
  .from(topic('orders', { value: json(schema) }))
  .map((order) => order.cents)
  .to('cents', topic('cents', { value: json() }))
`

describe('records', () => {
  test.each([
    ['that is no JSON', '{"cents":', /orders\/0@2\b.*SyntaxError/],
    ['that lacks a field', '{"price":3}', /orders\/0@2\b.*cents: must be a number/],
  ])('one %s parks the pipeline, naming topic, partition, offset and source', async (_, line, fault) => {
    using made = project({ 'orders.mjs': orders })
    const input = `{"cents":1}\n{"cents":2}\n${line}\n{"cents":4}\n`
    await succeed(made.pawl(['produce', 'orders', '--partitions', '1'], { input }))
    expectParked(await made.pawl(['run', 'orders.mjs', ...caughtUp]), 'DECODE_FAILED', fault)
    const status = await made.pawl(['status'])
    expect(status.code).toBe(3)
    expect(status.stdout).toMatch(/^state +parked$/m)
    expect(status.stdout).toMatch(/^waits +for a person or a new build/m)
  })

  test('one that an operator throws on parks the pipeline, and a mended file goes on from there', async () => {
    const thrower = (body: string) => wordCount.replace("line.split(' ')", body)
    using made = project({ 'count.ts': thrower("{ if (line === 'boom') throw new Error('bad line'); return [line] }") })
    await succeed(made.pawl(['produce', 'lines', '--partitions', '1'], { input: 'a\nboom\nb\n' }))
    const parked = await made.pawl(['run', 'count.ts', ...caughtUp])
    expectParked(parked, 'OPERATOR_FAILED', /flat-?map.* on record lines\/0@1: Error: bad line/i)
    expectParked(await made.pawl(['run', 'count.ts', ...caughtUp]), 'OPERATOR_FAILED', /bad line/)
    expectParked(await made.pawl(['run', 'count.ts', '--resume', ...caughtUp]), 'OPERATOR_FAILED', /bad line/)
    made.write('count.ts', thrower('[line]'))
    await succeed(made.pawl(['run', 'count.ts', ...caughtUp]))
    const { stdout } = await succeed(made.pawl(['consume', 'counts', '--keys']))
    expect(stdout.trim().split('\n').sort()).toEqual(['a\t1', 'b\t1', 'boom\t1'])
  })

  test('one that is huge is refused where it would enter', async () => {
    using made = project()
    const input = `small\n${'x'.repeat(8 * 1024 * 1024 + 1)}\n`
    const ended = await made.pawl(['produce', 'lines', '--partitions', '1'], { input })
    expectRefusal(ended, 'RECORD_TOO_LARGE', /line 2 has 8388609 bytes, 8388608 are allowed/)
  })
})

describe('pipeline files', () => {
  test.each([
    ['nothing.ts', null, /nothing\.ts: there is no such file/],
    ['syntax.ts', 'export default pipeline(', /syntax\.ts: it does not load: SyntaxError: .*\(syntax\.ts:1\)/],
    ['syntax.mjs', 'export default (\n\n}', /syntax\.mjs: it does not load: SyntaxError: Unexpected token '}'/],
    ['throws.ts', "throw new TypeError('no luck')", /throws\.ts: it does not load: TypeError: no luck/],
    [
      'imports.ts',
      "import 'not-installed'",
      /imports\.ts: it does not load: Error: Cannot find package 'not-installed'/,
    ],
    ['empty.ts', 'export const other = 1', /empty\.ts: it has no default export/],
    ['number.ts', 'export default 7', /number\.ts: its export is of type number, no pipeline with a sink/],
    ['object.ts', 'export default {}', /object\.ts: its export is an object, no pipeline/],
  ])('%s is refused', async (file, text, fault) => {
    using made = project(text === null ? {} : { [file]: text })
    expectRefusal(await made.pawl(['run', file]), 'PIPELINE_FILE_INVALID', fault)
    expect(existsSync(made.path('.pawl'))).toBe(false)
  })

  test('a directory is refused', async () => {
    using made = project()
    expectRefusal(await made.pawl(['run', '.']), 'PIPELINE_FILE_INVALID', /\.: it is no file/)
  })

  test('mistakes of a pipeline are listed together: two operators with one id, no sink to a branch', async () => {
    using made = project({
      'twice.ts': wordCount.replace("topic('counts'", "topic('counts-topic'").replace(".to('counts'", ".to('counter'"),
    })
    expectRefusal(await made.pawl(['run', 'twice.ts']), 'PIPELINE_INVALID', /word-count: id "counter" is used 2 times/)
  })

  test('an export that is not there is named', async () => {
    using made = project({ 'count.ts': wordCount })
    const ended = await made.pawl(['run', 'count.ts', '--export', 'other'])
    expectRefusal(ended, 'PIPELINE_FILE_INVALID', /count\.ts: it has no other export/)
  })

  test('state under a changed operator id is not lost: the pipeline parks with the id', async () => {
    using made = await countedProject()
    made.write('count.ts', wordCount.replace(".count('counter')", ".count('renamed')"))
    await succeed(made.pawl(['produce', 'lines'], { input: linesOf(1) }))
    expectParked(
      await made.pawl(['run', 'count.ts', ...caughtUp]),
      'LINEAGE_CHANGED',
      /no operator counter, which has state/,
    )
    made.write('count.ts', wordCount)
    await succeed(made.pawl(['run', 'count.ts', ...caughtUp]))
  })
})

describe('damage', () => {
  /** Flips a bit of the newest stored object whose name ends like this. */
  const damage = (made: Project, ending: RegExp) => {
    const store = made.path('.pawl', 'store')
    const { manifest } = newest(made)
    const names = ending.test(manifest.name)
      ? [manifest.name]
      : namesIn(readFileSync(join(store, manifest.name), 'utf8'), ending)
    const path = join(store, names.at(-1)!)
    const bytes = readFileSync(path)
    bytes[bytes.length >> 1]! ^= 1
    writeFileSync(path, bytes)
  }
  const newest = (made: Project) => {
    const database = new DatabaseSync(made.path('.pawl', 'ledger.db'), { readOnly: true })
    const row = database.prepare('SELECT item FROM history ORDER BY epoch DESC LIMIT 1').get()
    database.close()
    return JSON.parse(String(row!.item)) as { manifest: { name: string } }
  }
  const namesIn = (manifest: string, ending: RegExp) =>
    [...manifest.matchAll(/"name":"([^"]+)"/g)].map((match) => match[1]!).filter((name) => ending.test(name))

  test.each([
    ['a snapshot', /\/state-\d+$/, 'SNAPSHOT_DAMAGED', 'SNAPSHOT_DAMAGED'],
    ['a manifest', /\/manifest$/, 'MANIFEST_DAMAGED', 'MANIFEST_DAMAGED'],
  ] as const)('of %s stops the run, and verify names the object', async (_, ending, reason, found) => {
    using made = await countedProject()
    await succeed(made.pawl(['produce', 'lines'], { input: linesOf(10) }))
    damage(made, ending)
    expectParked(await made.pawl(['run', 'count.ts', ...caughtUp]), reason, /pipelines\/word-count\//)
    const verified = await made.pawl(['verify'])
    expect(verified.code).toBe(1)
    expect(verified.stdout.split('\n')[0]).toMatch(new RegExp(`^${found}: .*: pipelines/word-count/.*\\. Next: .*\\.$`))
    expect(verified.stdout).toMatch(/^verdict +1 fault$/m)
    const [record] = (await made.pawl(['verify', '--json'])).records()
    expect(record.faults).toEqual([expect.objectContaining({ code: found, next: errorRegistry[found].action })])
  })

  test('of a visible file is found by verify; a file that a reader took away is none', async () => {
    using made = await countedProject()
    const directory = made.path('.pawl', 'files', 'word-count', 'counts')
    const visible = readdirSync(directory).filter((name) => name.endsWith('.jsonl'))
    const path = join(directory, visible[0]!)
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"key":"more"}\n`)
    const { code, stdout } = await made.pawl(['verify'])
    expect(code).toBe(1)
    expect(stdout).toContain(`FILE_CHANGED: ${errorRegistry.FILE_CHANGED.message}: `)
    rmSync(path)
    expect((await succeed(made.pawl(['verify']))).stdout).toContain('sound')
  })

  test('of the ledger is refused, whatever looks at it', async () => {
    using made = await countedProject()
    writeFileSync(made.path('.pawl', 'ledger.db'), 'not a database, but long enough to be taken for one'.repeat(100))
    expectRefusal(await made.pawl(['epochs']), 'LEDGER_DAMAGED', /ledger\.db/)
    expectRefusal(await made.pawl(['run', 'count.ts']), 'LEDGER_DAMAGED', /ledger\.db/)
  })

  test('a ledger that was restored from a backup is noticed, before and after anything runs on it', async () => {
    using made = await countedProject()
    const ledger = made.path('.pawl', 'ledger.db')
    const backup = readFileSync(ledger)
    await succeed(made.pawl(['produce', 'lines'], { input: linesOf(100) }))
    await succeed(made.pawl(['run', 'count.ts', ...caughtUp]))
    for (const file of [`${ledger}-wal`, `${ledger}-shm`]) rmSync(file, { force: true })
    writeFileSync(ledger, backup)
    const verified = await made.pawl(['verify'])
    expect(verified.code).toBe(1)
    expect(verified.stdout).toMatch(
      /^LEDGER_REWOUND: .*: lane counts\/0 in files:.* shows epoch 6, the head 3\. Next: /m,
    )
    expect(verified.stdout).toMatch(/^LEDGER_REWOUND: .*: the store holds a manifest of epoch 6, the head 3\. Next: /m)
    expectParked(await made.pawl(['run', 'count.ts', ...caughtUp]), 'LEDGER_REWOUND', /lane counts\/0 shows epoch 6/)
    const { stdout } = await succeed(made.pawl(['consume', 'counts', '--keys']))
    expect(
      stdout
        .split('\n')
        .filter((line) => line.startsWith('ratchet\t'))
        .at(-1),
    ).toBe('ratchet\t200')
  })

  test('a ledger of a newer version is refused and left alone', async () => {
    using made = await countedProject()
    const database = new DatabaseSync(made.path('.pawl', 'ledger.db'))
    database.exec('PRAGMA user_version = 99')
    database.close()
    expectRefusal(await made.pawl(['run', 'count.ts']), 'LEDGER_TOO_NEW', /has version 99, this Pawl knows \d+/)
    expectRefusal(await made.pawl(['verify']), 'LEDGER_TOO_NEW', /has version 99/)
  })
})

describe('places', () => {
  test('an unreachable broker is an error at the start, after a short wait', async () => {
    using made = project({ 'count.ts': wordCount, 'kafka.json': '{"patienceMs":300,"connectTimeoutMs":300}' })
    const ended = await made.pawl(['run', 'count.ts', '--bootstrap', '127.0.0.1:1', '--kafka-config', 'kafka.json'])
    expectRefusal(ended, 'BROKER_UNREACHABLE', /127\.0\.0\.1:1/)
  })

  test('a missing topic is an error at the start', async () => {
    using made = project({ 'count.ts': wordCount })
    expectRefusal(await made.pawl(['run', 'count.ts']), 'TOPIC_MISSING', /lines/)
    const produced = await made.pawl(['produce', 'lines'], { input: 'a\n' })
    expectRefusal(produced, 'TOPIC_MISSING', /lines, --partitions N creates it/)
    expectRefusal(await made.pawl(['consume', 'counts']), 'TOPIC_MISSING', /no sink and no topic counts/)
  })

  test('a directory that is none is not made by looking at it', async () => {
    using made = project()
    for (const command of [['epochs'], ['show', '1'], ['verify'], ['status']]) {
      const ended = await made.pawl([...command, '--dir', 'mistyped'])
      expectRefusal(ended, 'PIPELINE_NOT_FOUND', /mistyped is no pipeline directory/)
    }
    expect(existsSync(made.path('mistyped'))).toBe(false)
  })

  test('a pipeline or epoch that is not there is named, with those that are', async () => {
    using made = await countedProject(10)
    expectRefusal(await made.pawl(['epochs', 'other']), 'PIPELINE_NOT_FOUND', /other in \.pawl, it holds word-count/)
    expectRefusal(await made.pawl(['show', '99']), 'EPOCH_NOT_FOUND', /epoch 99 of word-count, which retains 0 to 1/)
  })

  test('a directory of several pipelines asks for the one that is meant', async () => {
    using made = await countedProject(10)
    made.write('again.ts', wordCount.replace("pipeline('word-count'", "pipeline('again'"))
    await succeed(made.pawl(['run', 'again.ts', ...caughtUp]))
    expectRefusal(await made.pawl(['epochs']), 'COMMAND_INVALID', /holds 2 pipelines, name one of again, word-count/)
    expectRefusal(await made.pawl(['consume', 'counts']), 'COMMAND_INVALID', /add --pipeline again or word-count/)
    await succeed(made.pawl(['epochs', 'again']))
    const other = await made.pawl(['verify', 'again', '--file', 'count.ts'])
    expectRefusal(other, 'COMMAND_INVALID', /count\.ts is pipeline word-count, not again/)
  })
})

describe('command lines', () => {
  test.each([
    [['frobnicate'], /there is no command "frobnicate"/],
    [['simulat'], /there is no command "simulat", did you mean simulate\?/],
    [['run'], /FILE is missing \(pawl run\)/],
    [['run', 'a.ts', 'b.ts'], /"b\.ts" is one argument too many \(pawl run\)/],
    [['run', 'a.ts', '--fast'], /unknown option '--fast' \(pawl run\)/],
    [['run', 'a.ts', '--dir'], /'--dir <value>' argument missing/],
    [['run', 'a.ts', '--until', 'monday'], /--until takes caught-up, not "monday"/],
    [['epochs', '--last', '0'], /--last takes a whole number of at least 1, not "0"/],
    [['epochs', '--last', '1e3'], /--last takes a whole number/],
    [['show', 'first'], /"first" is no epoch/],
    [['produce', 'a/b', '--partitions', '1'], /"a\/b" is no topic name/],
    [['produce', 'lines', '--file', 'none.txt'], /there is no file none\.txt/],
  ])('%j is refused', async (args, fault) => {
    using made = project({ 'a.ts': wordCount })
    expectRefusal(await made.pawl(args), 'COMMAND_INVALID', fault)
    expect(readdirSync(made.directory).sort()).toEqual(['a.ts', 'node_modules'])
  })

  test('an error is a document on stdout under --json', async () => {
    using made = project()
    const ended = await made.pawl(['epochs', '--json'])
    expect(ended.records()).toEqual([
      {
        error: {
          code: 'PIPELINE_NOT_FOUND',
          kind: 'Invalid',
          message: ended.stderr.trim(),
          next: errorRegistry.PIPELINE_NOT_FOUND.action,
          details: { directory: '.pawl' },
        },
      },
    ])
  })

  test('a stack is shown only when PAWL_DEBUG asks for it', async () => {
    using made = project()
    const { stderr } = await made.pawl(['epochs'], { env: { PAWL_DEBUG: '1' } })
    expect(stderr).toMatch(/\n +at /)
  })

  test('secrets of a configuration that is no JSON are not repeated', async () => {
    using made = project({ 'count.ts': wordCount, 'kafka.json': '{"sasl":{"password":"hunter2"' })
    const ended = await made.pawl(['run', 'count.ts', '--bootstrap', '127.0.0.1:1', '--kafka-config', 'kafka.json'])
    expectRefusal(ended, 'COMMAND_INVALID', /kafka\.json is no JSON/)
    expect(ended.stderr).not.toContain('hunter2')
  })

  test('half a credential is refused', async () => {
    using made = project({ 'count.ts': wordCount })
    const env = { PAWL_KAFKA_USERNAME: 'anna' }
    const ended = await made.pawl(['run', 'count.ts', '--bootstrap', '127.0.0.1:1'], { env })
    expectRefusal(ended, 'COMMAND_INVALID', /PAWL_KAFKA_USERNAME is set, PAWL_KAFKA_PASSWORD is not/)
  })

  test('input of a simulation names a source and a file of values', async () => {
    using made = project({ 'orders.mjs': orders, 'orders.jsonl': '{"cents":1}\n{"cents":\n' })
    const simulate = (input: string) => made.pawl(['simulate', 'orders.mjs', '--seed', '1', '--input', input])
    expectRefusal(await simulate('bids=orders.jsonl'), 'COMMAND_INVALID', /names no source of orders/)
    expectRefusal(await simulate('orders=none.jsonl'), 'COMMAND_INVALID', /there is no file none\.jsonl/)
    expectRefusal(await simulate('orders=orders.jsonl'), 'COMMAND_INVALID', /orders\.jsonl line 2 is no JSON/)
    expectRefusal(
      await made.pawl(['simulate', 'orders.mjs', '--seed', '1']),
      'COMMAND_INVALID',
      /source orders reads json/,
    )
  })
})
