import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = new URL('../../', import.meta.url).pathname
const place = mkdtempSync(join(tmpdir(), 'pawl-package-'))
const installed = join(place, 'node_modules/pawl')

const pipelineFile = `
import { json, pipeline, text, topic } from 'pawl'
const orders = topic('orders', { key: text(), value: json<{ customer: string; cents: number }>() })
export default pipeline('order-totals')
  .from(orders)
  .keyBy((order) => order.customer)
  .aggregate('total', { create: () => 0, add: (total, order) => total + order.cents })
  .to('totals', topic('totals', { key: text(), value: json<number>() }))
`

beforeAll(() => {
  execFileSync('npm', ['pack', '--silent', '--pack-destination', place], { cwd: root })
  const tarball = readdirSync(place).find((file) => file.endsWith('.tgz')) ?? ''
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', join(place, tarball), '-C', installed, '--strip-components', '1'])
  for (const [name] of Object.entries(packageJson(installed).dependencies ?? {})) link(name)
  for (const name of ['@types/node', 'undici-types']) link(name)
  writeFileSync(join(place, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(place, 'totals.ts'), pipelineFile)
}, 120_000)

afterAll(() => rmSync(place, { recursive: true, force: true }))

test('the packed package imports from each entry, without any optional peer', () => {
  // Synthesis needs the CDK, and has a test of its own.
  const others = ['./package.json', './cdk']
  const entries = Object.keys(packageJson(installed).exports ?? {}).filter((entry) => !others.includes(entry))
  const imports = entries.map((entry) => `await import('pawl${entry.slice(1)}')`).join('; ')
  expect(() => execFileSync(process.execPath, ['--input-type=module', '-e', imports], { cwd: place })).not.toThrow()
})

test('a stack is synthesised with the packed construct, its functions bundled from the packed sources', () => {
  const clients = ['cloudformation', 'dynamodb', 'lambda', 's3', 'secrets-manager', 'sfn'].map(
    (name) => `@aws-sdk/client-${name}`,
  )
  for (const name of ['aws-cdk-lib', 'constructs', 'esbuild', 'kafkajs', ...clients]) link(name)
  const app = `
    import { App, Stack } from 'aws-cdk-lib'
    import { ExactlyOncePipeline } from 'pawl/cdk'
    const app = new App()
    const source = { bootstrapServers: 'a:9092', authentication: { type: 'none' } }
    new ExactlyOncePipeline(new Stack(app, 'Totals'), 'Totals', { entry: 'totals.ts', stageName: 'test', source })
    console.log(Object.keys(app.synth().stacks[0].template.Resources).length)`
  const options = { cwd: place, encoding: 'utf8', stdio: 'pipe' } as const
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', app], options)
  expect(Number(printed.trim())).toBeGreaterThan(40)
})

test('the packed command answers', () => {
  const help = execFileSync(process.execPath, [join(installed, 'dist/cli/main.js'), '--help'], { cwd: place })
  expect(help.toString()).toContain('usage: pawl COMMAND')
})

test('a pipeline file type-checks against the packed declarations', () => {
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node']
  const check = () => execFileSync(join(root, 'node_modules/.bin/tsc'), [...options, 'totals.ts'], { cwd: place })
  expect(check).not.toThrow()
})

test('compiled files point to no TypeScript file', () => {
  const scripts = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' })
  const stale = scripts
    .filter((file) => file.endsWith('.js'))
    .filter((file) => /new URL\(\s*['"`][^'"`]*\.ts['"`]/.test(readFileSync(join(installed, 'dist', file), 'utf8')))
  expect(stale).toEqual([])
})

interface PackageJson {
  readonly dependencies?: Record<string, string>
  readonly exports?: Record<string, unknown>
}

function packageJson(folder: string): PackageJson {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

function link(name: string): void {
  const target = join(place, 'node_modules', name)
  mkdirSync(join(target, '..'), { recursive: true })
  symlinkSync(join(root, 'node_modules', name), target)
}
