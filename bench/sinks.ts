/**
 * `npm run bench -- sinks`: how fast sinks are written, beside the same rows written bare.
 *
 * Databases and broker are started here. Prints a table and writes it to docs/performance.md; exits with 1 when a goal
 * is missed.
 */
import { productionBroker, runPart } from './broker.ts'
import { machine, markdown, today, writeBetween } from './report.ts'

/** What `parts/sinks.ts` prints for each database. */
interface TableFigures {
  readonly sink: string
  readonly rows: number
  readonly perSecond: { readonly staged: number; readonly bare: number; readonly promoted: number }
  readonly ratio: number
  readonly oneRowMs: { readonly bare: number; readonly promoted: number }
}

/** What `parts/kafka-promote.ts` prints for each epoch. */
interface KafkaFigures {
  readonly records: number
  readonly stagePerSecond: number
  readonly promotePerSecond: number
}

const ratioMin = 0.7
const kafkaMin = 500_000
const bareNames: Readonly<Record<string, string>> = {
  postgres: 'one transaction with COPY',
  mysql: 'one transaction of multi-row INSERTs of the same size',
}
const header = [
  'sink',
  'rows an epoch',
  'staged/s',
  'bare',
  'bare/s',
  'promoted/s',
  'goal',
  'reached',
  'one row, bare',
  'as an epoch',
]
const shown = (count: number) => count.toLocaleString('en')

/** Measures, prints, writes the page. `missing` says what a broker lacks; null: nothing. */
export async function measureSinks(missing: string | null): Promise<void> {
  const tables = parsed<TableFigures>(await runPart(['sinks.ts'], ''))
  const rows = tables.map(tableCells)
  if (missing === null) rows.push(await kafkaCells())
  const table = markdown([header, header.map(() => '---'), ...rows])
  process.stdout.write(`${table}\n`)
  if (missing !== null) process.stdout.write(`${missing}: Kafka was not measured, the page stays as it is\n`)
  else
    writeBetween('measured sinks', `Measured on ${today()} by \`npm run bench -- sinks\`: ${machine()}.\n\n${table}\n`)
  if (rows.some((cells) => cells.includes('no'))) process.exitCode = 1
}

function tableCells({ sink, rows, perSecond, ratio, oneRowMs }: TableFigures): string[] {
  const rates = [shown(perSecond.bare), `${shown(perSecond.promoted)} (${ratio.toFixed(2)}×)`]
  const goal = [`≥ ${ratioMin}×`, ratio >= ratioMin ? 'yes' : 'no']
  const one = [`${oneRowMs.bare.toFixed(2)} ms`, `${oneRowMs.promoted.toFixed(2)} ms`]
  return [sink, shown(rows), shown(perSecond.staged), bareNames[sink] ?? '–', ...rates, ...goal, ...one]
}

/** The slowest epoch counts, but the first, in which the broker is still compiling. */
async function kafkaCells(): Promise<string[]> {
  const broker = await productionBroker()
  try {
    const epochs = parsed<KafkaFigures>(await runPart(['kafka-promote.ts', '--rounds', '5'], broker.bootstrap)).slice(1)
    const staged = Math.min(...epochs.map(({ stagePerSecond }) => stagePerSecond))
    const promoted = Math.min(...epochs.map(({ promotePerSecond }) => promotePerSecond))
    const goal = [`≥ ${shown(kafkaMin)}`, promoted >= kafkaMin ? 'yes' : 'no']
    return ['kafka', shown(epochs[0].records), shown(staged), '–', '–', shown(promoted), ...goal, '–', '–']
  } finally {
    await broker.remove()
  }
}

const parsed = <Figures>([, output]: readonly [name: string, output: string]): Figures[] =>
  output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Figures)
