/**
 * A leaderboard in Redis: points per player, in a sorted set that is never ahead of the commit and never behind it.
 *
 * `ZREVRANGE leaderboard 0 9 WITHSCORES` is the board.
 */
import { json, pipeline, topic } from 'pawl'
import { redis } from 'pawl/redis'

interface Goal {
  readonly player: string
  readonly points: number
}

/** Where goals come from. */
export const goals = topic('goals', { value: json() })

export default pipeline('leaderboard', { checkpoint: { intervalMs: 200 } })
  .from(goals)
  .map('check', (goal): Goal => {
    const { player, points } = Object(goal)
    if (typeof player !== 'string' || typeof points !== 'number') throw new Error('a goal has a player and points')
    return { player, points }
  })
  .keyBy((goal) => goal.player)
  .aggregate('points', { create: () => 0, add: (sum, goal) => sum + goal.points })
  .to(
    'board',
    redis({
      connection: () => process.env.REDIS_URL ?? 'redis://127.0.0.1:6379/0',
      type: 'sorted-set',
      key: 'leaderboard',
    }),
  )
