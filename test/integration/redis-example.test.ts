import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import leaderboard from '../../examples/leaderboard/pipeline.ts'
import { prng } from '../../lib/model/prng.ts'
import { redisTest as test } from '../support/redis.ts'
import { install } from '../support/table-runs.ts'

test('leaderboard: the board has every goal once, while Redis is killed again and again', async ({ redis }) => {
  process.env.REDIS_URL = redis.url
  const random = prng(9)
  const runs = install(leaderboard)
  onTestFinished(runs.remove)
  const points = new Map<string, number>()
  for (let portion = 0; portion < 5; portion++) {
    const goals = Array.from({ length: 40 }, () => ({ player: `player-${random.int(9)}`, points: 1 + random.int(5) }))
    for (const goal of goals) points.set(goal.player, (points.get(goal.player) ?? 0) + goal.points)
    await runs.append(...goals.map((goal) => JSON.stringify(goal)))
    const running = runs.run()
    await sleep(random.int(60))
    await redis.kill()
    await redis.restart()
    expect(await running).toMatchObject({ reason: 'caught-up' })
  }
  const client = redis.connect()
  onTestFinished(() => client.disconnect())
  for (const [player, sum] of points) expect(Number(await client.zscore('leaderboard', player))).toBe(sum)
  expect(await client.zcard('leaderboard')).toBe(points.size)
})
