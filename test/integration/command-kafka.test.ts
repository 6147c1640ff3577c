/**
 * The `pawl` command against a broker: run, verify through the pipeline file, and what is refused at the start.
 */
import { expect } from 'vitest'
import { type Project, project, succeed } from '../cli/command.ts'
import { kafkaTest as test } from '../support/kafka.ts'
import { connectPlain, seen } from '../support/kafka-sink.ts'
import { freshTopic, send } from '../support/kafka-topics.ts'

const pipelineOf = (from: string, to: string) => `
import { json, pipeline, text, topic } from 'pawl'
export default pipeline('count-${from}', { checkpoint: { intervalMs: 0 }, epoch: { spanMax: 100 } })
  .from(topic('${from}', { value: text() }))
  .flatMap((line) => line.split(' '))
  .keyBy((word) => word)
  .count('counter')
  .to('counts', topic('${to}', { key: text(), value: json<number>(), lanes: 2 }))
`

async function lastByKey(bootstrap: string, topic: string): Promise<Record<string, string>> {
  const link = connectPlain(bootstrap)
  const records = await seen(link, topic)
  await link.close()
  return Object.fromEntries(records.map(({ key, value }) => [String(key), String(value)]))
}

async function markersLine(made: Project, args: readonly string[]): Promise<string | undefined> {
  const { stdout } = await succeed(made.pawl(['verify', ...args]))
  expect(stdout).toMatch(/^verdict +sound$/m)
  return /^markers +(.*)$/m.exec(stdout)?.[1]
}

test('counts from topic to topic, goes on where it was, and verifies its markers in the broker', async ({ broker }) => {
  const [from, to] = [await freshTopic(broker, 3), await freshTopic(broker, 2)]
  using made = project({ 'count.ts': pipelineOf(from, to) })
  const kafka = ['--bootstrap', broker.bootstrap]
  for (const portion of [1, 2]) {
    const messages = Array.from({ length: 300 }, (_, i) => ({ value: `ratchet w${i % 10}`, partition: i % 3 }))
    await send(broker, from, messages)
    const records = (
      await succeed(made.pawl(['run', 'count.ts', ...kafka, '--until', 'caught-up', '--json']))
    ).records()
    expect(records.at(-1)).toMatchObject({ event: 'ended', reason: 'caught-up', counts: { in: 300 }, failures: 0 })
    const counts = await lastByKey(broker.bootstrap, to)
    expect(counts).toMatchObject({ ratchet: `${300 * portion}`, w0: `${30 * portion}`, w9: `${30 * portion}` })
  }
  expect(await markersLine(made, [])).toBe('0 of 2 lanes: --file FILE reads the others')
  expect(await markersLine(made, ['--file', 'count.ts', ...kafka])).toBe('2 lanes')
})

test('refuses a topic that the broker does not have', async ({ broker }) => {
  using made = project({ 'count.ts': pipelineOf('no-such-topic', 'nowhere') })
  const { code, stderr } = await made.pawl(['run', 'count.ts', '--bootstrap', broker.bootstrap])
  expect(stderr).toMatch(/^TOPIC_MISSING: the topic does not exist: no-such-topic.*\. Next: .*\n$/)
  expect(code).toBe(1)
})
