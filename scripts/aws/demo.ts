/**
 * `npm run aws:demo`: feeds lines to the deployed word count, shows its epochs, then the result.
 *
 * Nothing here touches the pipeline but through its topics: the poller rings, functions count, and the output is
 * read as any `read_committed` reader would, then held against the count of what was fed.
 *
 *     npm run aws:demo -- [LINES]
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { lineStream } from '../../examples/demo/lines.ts'
import { wordCounts } from '../../examples/word-count/pipeline.ts'
import { kafka } from '../../lib/adapters/kafka/cluster.ts'
import { unseal } from '../../lib/epoch/seal.ts'
import type { Manifest } from '../../lib/model/manifest.ts'
import { type OpenedDeployment, openDeployment } from '../../lib/places/stack.ts'
import { appendLines, createTopics } from './kafka-topics.ts'
import { mustFindLocal, perform, say, stackName } from './local.ts'

const portions = 10
const wordsShown = 10
const patienceMs = 120_000
const count = (number: number) => number.toLocaleString('en-US')

await perform(async () => {
  const { environment, bootstrapServers } = mustFindLocal()
  Object.assign(process.env, environment)
  const total = Math.max(portions, Number(process.argv[2] ?? 100_000))
  const deployment = await openDeployment(stackName, undefined).catch((error: Error) => {
    throw new Error(`${error.message} (npm run aws:deploy deploys it)`)
  })
  await createTopics(bootstrapServers)
  const before = await countsShown(bootstrapServers)
  const lines = lineStream(Date.now() % 1_000_000)
  say(`feeds ${count(total)} lines to the topic lines in ${portions} portions; each rings the trigger`)
  console.log()
  console.log(`  ${'epoch'.padStart(7)}${'lines'.padStart(10)}${'rows'.padStart(8)}${'took'.padStart(10)}`)
  const ends = await feedAndFollow(deployment, bootstrapServers, total, lines.take)
  await deployment.store.close()
  await deployment.ledger.close()
  console.log()
  tellResult(before, await countsShown(bootstrapServers), lines.counts)
  say(`${count(ends)} lines are counted in all; npm run pawl -- epochs --stack ${stackName} shows more`)
})

/** Feeds, and prints each epoch as it becomes visible; until all is. Answers with the lines counted so far. */
async function feedAndFollow(
  { ledger, store, pipeline }: OpenedDeployment,
  bootstrapServers: string,
  total: number,
  take: (lines: number) => string,
): Promise<number> {
  const known = (await ledger.read(pipeline))?.promotedThrough ?? 0
  const state = { shown: known, ends: 0, fed: false }
  const from = await linesCounted({ ledger, store, pipeline })
  const feeding = (async () => {
    for (let i = 0; i < portions; i++) {
      await appendLines(bootstrapServers, take(portion(total, i)).trimEnd().split('\n'))
      await sleep(1_000)
    }
    state.fed = true
  })()
  for (const until = Date.now() + patienceMs; ; await sleep(200)) {
    const promoted = (await ledger.read(pipeline))?.promotedThrough ?? 0
    for (const { epoch, manifest, atMs } of await ledger.histories(pipeline, state.shown + 1, promoted + 1)) {
      const { counts, progress, processingTimeMs } = await unseal<Manifest>(store, manifest)
      const rows = Object.values(counts.out).reduce((sum, number) => sum + number, 0)
      const cells = [String(epoch).padStart(7), count(counts.in).padStart(10), count(rows).padStart(8)]
      console.log(`  ${cells.join('')}${`${count(atMs - processingTimeMs)} ms`.padStart(10)}`)
      state.shown = epoch
      state.ends = progress.reduce((sum, { end }) => sum + Number(end), 0)
    }
    if (state.fed && state.ends >= from + total) break
    if (Date.now() > until) throw new Error(`${count(state.ends - from)} of ${count(total)} lines were counted in time`)
  }
  await feeding
  return state.ends
}

function portion(total: number, index: number): number {
  return Math.floor((total * (index + 1)) / portions) - Math.floor((total * index) / portions)
}

async function linesCounted({
  ledger,
  store,
  pipeline,
}: Pick<OpenedDeployment, 'ledger' | 'store' | 'pipeline'>): Promise<number> {
  const head = await ledger.read(pipeline)
  if (head === null) return 0
  const { progress } = await unseal<Manifest>(store, head.committed.manifest)
  return progress.reduce((sum, { end }) => sum + Number(end), 0)
}

/** The newest count of each word in the output topic. */
async function countsShown(bootstrapServers: string): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  const nobody = { pipeline: 'reader', incarnation: '', stage: 'reader', directory: null, store: null as never }
  const source = await kafka({ brokers: bootstrapServers }).openSource(wordCounts as never, nobody)
  for (const range of (await source.bounds()).partitions) {
    for await (const { bytes, count: records, keyStarts, keyEnds, valueStarts, valueEnds } of source.read(range)) {
      for (let i = 0; i < records; i++) {
        const word = bytes.toString('utf8', keyStarts[i], keyEnds[i])
        counts.set(word, Number(bytes.toString('utf8', valueStarts[i], valueEnds[i])))
      }
    }
  }
  await source.close()
  return counts
}

/** Throws when a count is not what it was before and what was fed. */
function tellResult(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  fed: ReadonlyMap<string, number>,
): void {
  const words = [...fed].map(([word, more]) => {
    return { word, shown: after.get(word) ?? 0, expected: (before.get(word) ?? 0) + more }
  })
  words.sort((a, b) => b.expected - a.expected)
  console.log(`  ${'word'.padEnd(10)}${'in the topic'.padStart(14)}${'expected'.padStart(12)}`)
  for (const { word, shown, expected } of words.slice(0, wordsShown)) {
    console.log(`  ${word.padEnd(10)}${count(shown).padStart(14)}${count(expected).padStart(12)}`)
  }
  console.log(`  and ${count(Math.max(0, words.length - wordsShown))} more`)
  console.log()
  const wrong = words.filter(({ shown, expected }) => shown !== expected)
  if (wrong.length > 0) throw new Error(`${wrong.length} counts differ, such as ${JSON.stringify(wrong[0])}`)
  say('every count equal')
}
