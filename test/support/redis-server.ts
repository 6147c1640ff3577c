/**
 * A real Redis for tests and measurements; nothing of a test runner is used here.
 *
 * With an append-only file, flushed each second: what Redis recommends, and what loses its last second.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { findProgram, type Server, startServer } from './server.ts'

export interface RedisServer extends Server {
  readonly url: string
  /** A client of one's own. */
  connect(): Redis
}

/** What the tests lack, as a sentence; null when Redis can be started. */
export function missingRedis(): string | null {
  return findProgram('redis-server') ? null : 'redis-server is missing, so nothing was run against Redis'
}

export async function startRedis(...settings: readonly string[]): Promise<RedisServer> {
  const server = await startServer({
    name: 'redis',
    user: 'redis',
    command: (directory, port) => [
      findProgram('redis-server')!,
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      directory,
      '--save',
      '',
      ...['--appendonly', 'yes', '--appendfsync', 'everysec', '--requirepass', 'open-sesame', '--daemonize', 'no'],
      ...settings,
    ],
  })
  const url = `redis://:open-sesame@127.0.0.1:${server.port}/0`
  const connect = () => {
    const client = new Redis(url)
    client.on('error', () => undefined)
    return client
  }
  const ready = async () => {
    const client = connect()
    // Loading the append-only file takes a moment.
    while ((await client.ping().catch(() => '')) !== 'PONG') await sleep(20)
    client.disconnect()
  }
  await ready()
  return {
    ...server,
    url,
    connect,
    async restart() {
      await server.restart()
      await ready()
    },
  }
}

const slots = 16_384
/** Nodes that wait for each other longer than a test under load takes, and that keep what they have answered. */
const clusterSettings = [
  ...['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1', '--cluster-node-timeout', '8000'],
  ...['--appendfsync', 'always'],
]

/** So many nodes that share the slots, without replicas. Redis takes 2 seconds for it, and for each restart. */
export async function startRedisCluster(count: number): Promise<readonly RedisServer[]> {
  const nodes = await Promise.all(Array.from({ length: count }, () => startRedis(...clusterSettings)))
  const from = (index: number) => Math.ceil((slots * index) / count)
  for (const [index, node] of nodes.entries()) {
    const client = node.connect()
    await client.call('CLUSTER', 'ADDSLOTSRANGE', from(index), from(index + 1) - 1)
    for (const { port } of nodes) if (port !== node.port) await client.call('CLUSTER', 'MEET', '127.0.0.1', port)
    client.disconnect()
  }
  await clusterUp(nodes)
  return nodes
}

/** Waits until every node says that all slots are served. */
export async function clusterUp(nodes: readonly RedisServer[]): Promise<void> {
  for (const node of nodes) {
    const client = node.connect()
    while (!String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok')) await sleep(20)
    client.disconnect()
  }
}
