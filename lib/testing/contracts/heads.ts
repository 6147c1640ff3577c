/**
 * Heads and history items for the ledger's contract: every field filled, nothing that means anything.
 */
import { type Head, type HistoryItem, headVersion } from '../../model/head.ts'

/** A head; `write` tells writers apart. */
export function sampleHead(pipeline: string, revision: number, write = `write-${revision}`): Head {
  const manifest = { name: `${pipeline}/manifest`, bytes: 1234, sha256: 'ab'.repeat(32) }
  return {
    version: headVersion,
    pipeline,
    incarnation: '00112233445566778899aabbccddeeff',
    revision,
    write,
    generation: 3,
    run: {
      sequence: 2,
      id: 'run',
      open: true,
      place: 'here:1',
      leaseMs: 60_000,
      renewedAtMs: 1_700_000_000_000,
      epochs: 4,
    },
    open: {
      attempt: 'attempt',
      epoch: 9,
      build: 'build',
      openedAtMs: 1_700_000_000_123,
      span: 100,
      suspect: { source: 'lines', partition: 0, offset: '9007199254740993' },
    },
    committed: { epoch: 8, attempt: 'before', manifest, openedAtMs: 1_699_999_999_000, atMs: 1_699_999_999_999 },
    promotedThrough: 8,
    lanes: [{ sink: 'out', lane: 0, target: 'kafka:wörter "und" \u2028 mehr' }],
    retainedFrom: 1,
    savepoints: [],
    failures: { count: 0, atMs: [], last: null, notBeforeMs: 0, spanMax: null, suspect: null, convicted: [] },
    parked: null,
  }
}

/** A history item; `attempt` tells writers apart. */
export function sampleItem(epoch: number, attempt = `attempt-${epoch}`): HistoryItem {
  const manifest = { name: `epochs/${epoch}/manifest`, bytes: 99, sha256: 'cd'.repeat(32) }
  return { epoch, attempt, generation: 1, manifest, atMs: 1_700_000_000_000 + epoch }
}
