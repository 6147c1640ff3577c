/**
 * What AWS asks for what a deployed pipeline uses: list prices, one region, one date.
 *
 * US East (N. Virginia), first tier, without free tiers and discounts, in US dollars. Each with the page that has it;
 * compare with them before you rely on a figure.
 */

/** Where and when the prices were read. */
export const pricesAsOf = Object.freeze({ region: 'us-east-1', date: '2026-11-30' })

/** One price: what it is for, in which amount it is sold, and where it stands. */
export interface Price {
  readonly dollars: number
  /** So many of the unit. */
  readonly per: number
  readonly unit: string
  readonly source: string
}

const price = (dollars: number, per: number, unit: string, page: string): Price =>
  Object.freeze({ dollars, per, unit, source: `https://aws.amazon.com/${page}/pricing/` })

/** Prices by what is used. A month has 730 hours. */
export const awsPrices = Object.freeze({
  transition: price(25, 1e6, 'state transitions of a Standard workflow', 'step-functions'),
  expressRequest: price(1, 1e6, 'executions of an Express workflow', 'step-functions'),
  expressGbSecond: price(0.00001667, 1, 'GB-seconds of an Express workflow', 'step-functions'),
  invocation: price(0.2, 1e6, 'invocations', 'lambda'),
  gbSecond: price(0.0000133334, 1, 'GB-seconds on arm64', 'lambda'),
  writeUnit: price(0.625, 1e6, 'write units on demand', 'dynamodb'),
  readUnit: price(0.125, 1e6, 'read units on demand', 'dynamodb'),
  putRequest: price(0.005, 1000, 'PUT and LIST requests', 's3'),
  getRequest: price(0.0004, 1000, 'GET requests', 's3'),
  logGb: price(0.5, 1, 'GB of logs', 'cloudwatch'),
  metricMonth: price(0.3, 1, 'custom metrics a month', 'cloudwatch'),
  alarmMonth: price(0.1, 1, 'alarms a month', 'cloudwatch'),
  dashboardMonth: price(3, 1, 'dashboards a month', 'cloudwatch'),
  endpointHour: price(0.01, 1, 'hours of an interface endpoint in a zone', 'privatelink'),
  brokerHour: price(0.0456, 1, 'hours of a kafka.t3.small broker', 'msk'),
  brokerStorageMonth: price(0.1, 1, 'GB of broker storage a month', 'msk'),
  kpuHour: price(0.11, 1, 'hours of a KPU', 'managed-service-apache-flink'),
  kpuStorageMonth: price(0.1, 1, 'GB of running application storage a month', 'managed-service-apache-flink'),
})

/** Dollars for an amount of something. */
export function dollarsFor(one: Price, amount: number): number {
  return (one.dollars / one.per) * amount
}

/** Hours of a month, as AWS reckons. */
export const monthHours = 730

/** The least that Managed Service for Apache Flink costs a month: one KPU to work, one to orchestrate, 50 GB. */
export function managedFlinkMonth(): number {
  return 2 * monthHours * dollarsFor(awsPrices.kpuHour, 1) + dollarsFor(awsPrices.kpuStorageMonth, 50)
}
