/**
 * `consoleSink()`: prints committed rows, for a first look while developing.
 *
 * At least once: a terminal has no transactions and keeps no marker, so a repeated promotion prints again. Rows
 * wait in the store like those of any other sink, so nothing is printed that was not committed.
 */
import { type Serde, text } from '../../model/serde.ts'
import type { CustomSinkSpec } from '../../ports/spec.ts'
import type { RowSpec } from '../shared/row-encoding.ts'
import { memoryStageWriter, readStagedRows } from './staged-rows.ts'

/** What may be said of a console sink. */
export interface ConsoleSinkOptions<K, V> {
  readonly value: Serde<V>
  /** Text by default. */
  readonly key?: Serde<K>
  /** Takes each line; `console.log` by default. */
  readonly print?: (line: string) => void
}

/** Prints a line a row: key, a tab, value. A tombstone prints as `null`, a row without key its value alone. */
export function consoleSink<V, K = string>(options: ConsoleSinkOptions<K, V>): CustomSinkSpec<K, V> {
  const { print = console.log } = options
  const spec: Omit<RowSpec, 'topic'> = {
    key: (options.key ?? text()) as Serde<unknown>,
    value: options.value as Serde<unknown>,
    route: null,
    headers: null,
  }
  return Object.freeze({
    kind: 'sink',
    type: 'console',
    guarantee: 'at-least-once',
    lanes: 1,
    async open(sink, { store }) {
      return {
        target: 'console:',
        limits: { laneRowsMax: 100_000, laneBytesMax: 16 * 1024 * 1024 },
        stage: async (context) => memoryStageWriter(context, { ...spec, topic: sink }),
        base: async (_lane, marker) => marker,
        async promote(committable) {
          for (const { key, value } of await readStagedRows(store, committable)) {
            print(`${key === null ? '' : `${key}\t`}${value}`)
          }
          return { result: 'promoted' }
        },
        marker: async () => null,
        async close() {},
      }
    },
  } satisfies CustomSinkSpec<K, V>)
}
