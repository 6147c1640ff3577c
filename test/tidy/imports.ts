/**
 * Who may import whom: the one place where the table stands.
 *
 * `ARCHITECTURE.md` shows the same table, and `imports.test.ts` holds both against the code. A room is a folder of
 * `lib/`, an adapter, or one of the folders beside `lib/`; every room may import from itself.
 */

export interface Room {
  readonly room: string
  /** Rooms, or `adapters/*` for all adapters. */
  readonly rooms: readonly string[]
  /** Packages, by name or `name/*`. */
  readonly packages: readonly string[]
  /** Built-in modules of Node that may be used; `all` where the outside world is met. */
  readonly builtins: readonly string[] | 'all'
}

/** What computes and touches nothing. */
const pure = ['buffer', 'crypto', 'zlib']

const adapter = (name: string, packages: readonly string[] = [], rooms: readonly string[] = []): Room => ({
  room: `adapters/${name}`,
  rooms: ['model', 'ports', 'adapters/shared', ...rooms],
  packages,
  builtins: 'all',
})

const core = ['model', 'ports', 'state', 'stream', 'epoch']

/** In reading order: nothing here imports from below its own line, but for the adapters that composition roots pick. */
export const rooms: readonly Room[] = [
  { room: 'model', rooms: [], packages: ['@standard-schema/spec'], builtins: pure },
  { room: 'ports', rooms: ['model'], packages: [], builtins: ['crypto'] },
  { room: 'state', rooms: ['model', 'ports'], packages: [], builtins: pure },
  { room: 'stream', rooms: ['model', 'ports', 'state'], packages: ['@standard-schema/spec'], builtins: pure },
  { room: 'epoch', rooms: ['model', 'ports', 'state', 'stream'], packages: [], builtins: pure },
  { room: 'adapters/shared', rooms: ['model', 'ports'], packages: ['hyparquet-writer'], builtins: 'all' },
  adapter('memory'),
  adapter('system'),
  adapter('file'),
  adapter('sqlite'),
  adapter('segments'),
  adapter('delta', ['hyparquet']),
  adapter('doris'),
  adapter('kafka', ['kafkajs', 'aws-msk-iam-sasl-signer-js', 'lz4-napi', 'snappy', 'zstd-napi']),
  adapter('mysql', ['mysql2', 'mysql2/promise']),
  adapter('postgres', ['pg', 'pg-copy-streams']),
  adapter('redis', ['ioredis']),
  adapter('writeahead'),
  adapter('interpreter', ['aws-local-stepfunctions']),
  adapter('threads'),
  adapter('s3', ['@aws-sdk/client-s3']),
  adapter('dynamodb', ['@aws-sdk/client-dynamodb']),
  adapter('stepfunctions', ['@aws-sdk/client-sfn']),
  adapter('lambda', ['@aws-sdk/client-lambda']),
  adapter('secretsmanager', ['@aws-sdk/client-secrets-manager']),
  adapter('cloudformation', ['@aws-sdk/client-cloudformation']),
  adapter('cloudwatch'),
  { room: 'places', rooms: [...core, 'adapters/*'], packages: [], builtins: 'all' },
  {
    room: 'testing',
    rooms: [...core, 'adapters/shared', 'adapters/memory', 'adapters/interpreter'],
    packages: [],
    builtins: [...pure, 'assert/strict', 'v8', 'vm'],
  },
  {
    room: 'entry',
    rooms: [
      ...core,
      'places',
      'adapters/shared',
      'adapters/delta',
      'adapters/doris',
      'adapters/dynamodb',
      'adapters/file',
      'adapters/kafka',
      'adapters/mysql',
      'adapters/postgres',
      'adapters/redis',
      'adapters/s3',
      'adapters/secretsmanager',
      'adapters/writeahead',
    ],
    packages: [],
    builtins: [],
  },
  { room: 'cli', rooms: [...core, 'adapters/*', 'places', 'testing', 'entry'], packages: [], builtins: 'all' },
  { room: 'functions', rooms: [...core, 'adapters/*', 'places'], packages: ['pawl:pipeline'], builtins: 'all' },
  {
    // Of the adapters only names, which roles must spell out, and metrics, which alarms and dashboard are made of.
    room: 'infra',
    rooms: ['model', 'stream', 'epoch', 'adapters/cloudwatch', 'adapters/dynamodb', 'adapters/kafka', 'functions'],
    packages: ['aws-cdk-lib', 'aws-cdk-lib/*', 'constructs', 'esbuild'],
    builtins: 'all',
  },
  { room: 'examples', rooms: [], packages: ['pawl', 'pawl/*'], builtins: 'all' },
]

/** Packages whose loading costs time or opens something: never loaded by importing an entry of the package. */
export const vendors = [
  'hyparquet',
  'hyparquet-writer',
  'ioredis',
  'kafkajs',
  'mysql2',
  'pg',
  'pg-copy-streams',
  'aws-msk-iam-sasl-signer-js',
  'aws-local-stepfunctions',
  'lz4-napi',
  'snappy',
  'zstd-napi',
  '@aws-sdk/client-cloudformation',
  '@aws-sdk/client-dynamodb',
  '@aws-sdk/client-lambda',
  '@aws-sdk/client-s3',
  '@aws-sdk/client-secrets-manager',
  '@aws-sdk/client-sfn',
]

/** The room of a file, or null for folders that may import anything (`test`, `bench`, `scripts`). */
export function roomOf(path: string): string | null {
  const [top, folder, second] = path.split('/')
  if (top === 'examples' || top === 'functions' || top === 'infra') return top
  if (top !== 'lib') return null
  if (second === undefined) return 'entry'
  return folder === 'adapters' ? `adapters/${second}` : (folder ?? null)
}

/** The table as `ARCHITECTURE.md` shows it. */
export function tableText(): string {
  const rows = rooms.map(({ room, rooms: others, packages, builtins }) => {
    const cells = [room, list(others), list(packages), builtins === 'all' ? 'all' : list(builtins)]
    return `| ${cells.join(' | ')} |`
  })
  return ['| room | may import | packages | built-in modules |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.join(', ')
}
