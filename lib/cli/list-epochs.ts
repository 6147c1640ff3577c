/**
 * `pawl epochs`: the newest committed epochs, and how the pipeline stands.
 *
 * History items are kept for ever, manifests only as far back as is retained: where a manifest is gone, its counts
 * are `-`.
 */
import type { HistoryItem } from '../model/head.ts'
import type { Manifest } from '../model/manifest.ts'
import { holderOf, manifestIfReadable, type OpenedPipeline, withPipeline } from './open-directory.ts'
import { type Call, type Command, placeOptions } from './parse-arguments.ts'
import { age, count, duration, table, time } from './print-values.ts'
import { exitCodes } from './report-error.ts'
import { headLines, headRecord } from './report-status.ts'
import type { Output, Style } from './write-output.ts'

/** `pawl epochs [PIPELINE]`. */
export const epochsCommand: Command = {
  name: 'epochs',
  summary: 'list committed epochs and how the pipeline stands',
  positionals: ['[PIPELINE]'],
  options: { ...placeOptions, last: { value: 'N', help: 'how many epochs, the newest ones; 20 by default' } },
  examples: [
    'pawl epochs',
    'pawl epochs word-count --last 5',
    'pawl epochs --stack my-stack',
    'pawl epochs --json | jq .epochs[].counts',
  ],
  run: ({ options, positionals, output }: Call) => {
    const last = options.number('last', 1) ?? 20
    return withPipeline(options, positionals[0], (opened) => list(opened, last, output))
  },
}

interface Row {
  readonly item: HistoryItem
  readonly manifest: Manifest | null
  readonly promoted: boolean
}

async function list(opened: OpenedPipeline, last: number, output: Output): Promise<number> {
  const { ledger, store, head } = opened
  const holder = head.run.open ? await holderOf(opened, head) : null
  const end = head.committed.epoch + 1
  const rows: Row[] = []
  for (const item of await ledger.histories(head.pipeline, Math.max(0, end - last), end)) {
    const manifest = item.epoch < head.retainedFrom ? null : await manifestIfReadable(store, item.manifest)
    rows.push({ item, manifest, promoted: item.epoch <= head.promotedThrough })
  }
  output.record({ ...headRecord(head, holder), epochs: rows.map(recordOf) })
  const style = output.style()
  output.print([...tableOf(rows, style), '', ...headLines(head, holder, style)])
  return exitCodes.success
}

function recordOf({ item, manifest, promoted }: Row) {
  return {
    epoch: item.epoch,
    committedAtMs: item.atMs,
    durationMs: manifest && item.atMs - manifest.processingTimeMs,
    attempt: item.attempt,
    generation: item.generation,
    manifest: item.manifest,
    counts: manifest?.counts ?? null,
    watermarkMs: manifest?.watermarkMs ?? null,
    promoted,
  }
}

function tableOf(rows: readonly Row[], style: Style): string[] {
  const headings = ['>epoch', 'committed', 'age', '>in', '>out', '>late', '>rejected', '>took', 'attempt', 'promoted']
  return table(
    headings,
    rows.map(({ item, manifest, promoted }) => {
      const counts = manifest?.counts
      const out = counts && Object.values(counts.out).reduce((sum, rows) => sum + rows, 0)
      const shown = (value: number | undefined) => (value === undefined ? '-' : count(style, value))
      return [
        count(style, item.epoch),
        time(item.atMs),
        age(style, item.atMs),
        shown(counts?.in),
        shown(out),
        shown(counts?.late),
        shown(counts?.rejected),
        manifest && item.epoch > 0 ? duration(item.atMs - manifest.processingTimeMs) : '-',
        item.attempt.slice(0, 8),
        promoted ? 'yes' : 'no',
      ]
    }),
  )
}
