import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { missingTool } from '../support/kafka.ts'
import { openArchive } from '../support/worker-archive.ts'
import { hear, runPawl, startWorker, type Worker } from '../support/worker-process.ts'
import { judgeOutput } from '../support/worker-verdict.ts'
import { kafkaWorld, pipelineId } from '../support/worker-world.ts'

/** So short that a test can outwait it. */
const transactionTimeoutMs = 1500
const isPromoted = ({ event }: { event: string }) => event === 'promoted'

test('case 21: Kafka is away for longer than its transaction timeout between commit and promote, and nothing is lost', async ({
  skip,
}) => {
  const missing = missingTool()
  if (missing !== null) return skip(missing)
  const world = await kafkaWorld({
    properties: { 'transaction.abort.timed.out.transaction.cleanup.interval.ms': 200 },
  })
  const broker = world.broker!
  const config = join(world.directory, 'kafka.json')
  writeFileSync(config, JSON.stringify({ transactionTimeoutMs, patienceMs: 500, connectTimeoutMs: 500 }))
  const archive = openArchive(world.directory, pipelineId)
  let fed = 0
  const feed = () => world.feed(Array.from({ length: 40 }, () => `to be or not to be w${fed++ % 7}`))
  let worker: Worker | null = null
  try {
    worker = startWorker([...world.args, '--kafka-config', config])
    // Stopped right after a commit, until it happens to be before the promotion.
    for (let isBetween = false; !isBetween; ) {
      const committed = hear(worker, ({ event }) => event === 'committed', 20_000)
      await feed()
      expect(await committed).not.toBeNull()
      worker.signal('SIGSTOP')
      await sleep(100)
      const head = await archive.read()
      isBetween = head!.committed.epoch > head!.promotedThrough
      if (!isBetween) worker.signal('SIGCONT')
    }
    await feed()
    await broker.kill()
    const parking = hear(worker, ({ event }) => event === 'parked', 30_000)
    worker.signal('SIGCONT')
    const parked = await parking
    expect(parked?.event).toMatchObject({ kind: 'promotion', code: 'BROKER_UNREACHABLE' })
    await sleep(2 * transactionTimeoutMs)
    expect(worker.isAlive).toBe(true)
    const back = hear(worker, isPromoted, 30_000)
    await broker.restart()
    expect(await back).not.toBeNull()
    worker.signal('SIGTERM')
    expect(await worker.ended).toEqual({ code: 0, signal: null })
    const rest = await runPawl(['run', ...world.args, '--until', 'caught-up'])
    expect(rest).toMatchObject({ code: 0 })
    await archive.read()
    const { rows } = await world.output()
    const { faults, lines } = judgeOutput({ input: await world.input(), manifests: archive.manifests, rows })
    expect({ faults, lines }).toEqual({ faults: [], lines: fed })
  } finally {
    worker?.signal('SIGCONT')
    await worker?.kill()
    await archive.close()
    await world.remove()
  }
})
