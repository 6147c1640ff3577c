/**
 * One stream into three sinks of different kinds: a Kafka topic, a table of PostgreSQL, and a Delta table.
 *
 * All three advance by whole epochs from one commit: what one of them shows, the others show a moment later or already,
 * and none ever shows what was not committed, whatever crashes.
 */
import { json, type PipelineOptions, pipeline, text, topic } from 'pawl'
import { delta } from 'pawl/delta'
import { postgres } from 'pawl/postgres'

/** What an account comes to. */
export interface Balance {
  readonly payments: number
  readonly cents: number
}

/** For whoever follows each change; to be read with `read_committed`. */
const changes = topic('balances', { key: text(), value: json<Balance>() })

/** For applications: one row an account. CREATE TABLE balances (account text PRIMARY KEY, payments int, cents bigint) */
const table = postgres({
  connection: () => process.env.POSTGRES_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  table: 'balances',
  mode: 'upsert',
  key: ['account'],
  row: (balance: Balance, account: string) => ({ account, ...balance }),
})

/** For analysis: each change a row, with the time of the newest payment in it. */
const lake = delta({
  table: process.env.DELTA_TABLE ?? 'balances.delta',
  columns: { account: 'string', payments: 'long', cents: 'long', changedAt: 'timestamp' },
  row: (balance: Balance, account: string, timestampMs) => ({ account, ...balance, changedAt: timestampMs }),
})

/** What a payment must be; throws for anything else. */
function checked(payment: unknown) {
  const { account, cents } = Object(payment)
  if (typeof account !== 'string') throw new Error('account is missing')
  if (!Number.isSafeInteger(cents)) throw new Error('cents is not a whole number')
  return { account, cents: Number(cents) }
}

/** The pipeline, with settings of your own. */
export function threeSinks(settings: PipelineOptions = {}) {
  const balances = pipeline('three-sinks', { checkpoint: { intervalMs: 1000 }, ...settings })
    .from(topic('payments', { value: json() }))
    .map('check', (payment) => checked(payment))
    .keyBy((payment) => payment.account)
    .aggregate('balance', {
      create: (): Balance => ({ payments: 0, cents: 0 }),
      add: (balance, { cents }) => ({ payments: balance.payments + 1, cents: balance.cents + cents }),
    })
  return balances.to('changes', changes).also(balances.to('table', table)).also(balances.to('lake', lake))
}

export default threeSinks()
