/**
 * Two-phase stream loads: prepared under a label, committed or aborted by transaction id, looked up by label.
 *
 * Of all loads under a label at most one can be prepared or committed at a time; an aborted one frees its label.
 * Sources: Doris's documentation of Stream Load, its two-phase commit and `get_load_state`; messages as in
 * `DatabaseTransactionMgr` of the frontend. An answer that is not understood is no success and no failure: the
 * caller reads the state of the label.
 */
import { isPawlError, PawlError } from '../../model/errors.ts'
import type { DorisAnswer, DorisHttp } from './http.ts'
import { type DorisForm, formatHeaders } from './rows.ts'

/** What Doris knows of a label. */
export type LabelState = 'PREPARE' | 'PRECOMMITTED' | 'COMMITTED' | 'VISIBLE' | 'ABORTED' | 'UNKNOWN'

/** A load that is prepared, or that its label stood for already. */
export interface PreparedLoad {
  readonly txnId: string
}

/** The loads of one sink. */
export interface DorisLoads {
  /** Throws `ROWS_REFUSED`, `SINK_SCHEMA_INVALID`, `SINK_UNAVAILABLE`; null: the label is taken, by whom is not said. */
  prepare(form: DorisForm, label: string, body: () => AsyncIterable<Buffer>): Promise<PreparedLoad | null>
  state(form: DorisForm, label: string): Promise<LabelState>
  /** True when it is committed, by this call or an earlier one; false when the state of its label must tell. */
  commit(form: DorisForm, txnId: string): Promise<boolean>
  abort(form: DorisForm, txnId: string): Promise<void>
  /**
   * Why Doris refuses rows, by a load under a label of its own that is aborted at once; null when it takes them. One that
   * cannot be aborted now, Doris aborts by its own clock. Throws `SINK_SCHEMA_INVALID`, `SINK_UNAVAILABLE`.
   */
  probe(form: DorisForm, label: string, rows: readonly string[]): Promise<LoadRefusal | null>
}

/** Why Doris refuses rows. */
export interface LoadRefusal {
  readonly error: PawlError
  /** Its error log, or the beginning of it: a line for each of some of the rows. */
  readonly log: string
}

const states: ReadonlySet<string> = new Set([
  'PREPARE',
  'PRECOMMITTED',
  'COMMITTED',
  'VISIBLE',
  'ABORTED',
  'UNKNOWN',
] satisfies LabelState[])

const rowsPerPiece = 1000
const errorLogMs = 5000
const errorLogChars = 300
const errorLogCharsMax = 1024 * 1024

/** Loads through these requests; `timeoutMs` bounds what Doris itself waits. */
export function dorisLoads(sink: string, http: DorisHttp, timeoutMs: number): DorisLoads {
  const finish = async (form: DorisForm, txnId: string, operation: 'commit' | 'abort') => {
    const headers = { txn_id: txnId, txn_operation: operation }
    return http({ method: 'PUT', path: `/api/${databaseOf(form)}/_stream_load_2pc`, headers })
  }
  const load = async (form: DorisForm, label: string, body: () => AsyncIterable<Buffer>) => {
    const [database, table] = parts(form)
    const headers = {
      ...formatHeaders(form),
      label,
      two_phase_commit: 'true',
      strict_mode: 'true',
      max_filter_ratio: '0',
      timezone: 'UTC',
      timeout: String(Math.ceil(timeoutMs / 1000)),
    }
    const answer = await http({ method: 'PUT', path: `/api/${database}/${table}/_stream_load`, headers, body })
    return answerOf(answer, sink, form)
  }
  return {
    async prepare(form, label, body) {
      const answer = await load(form, label, body)
      if (answer !== null && 'error' in answer) throw answer.error
      return answer
    },
    async state(form, label) {
      const path = `/api/${databaseOf(form)}/get_load_state?label=${encodeURIComponent(label)}`
      const { fields, text } = await http({ method: 'GET', path })
      // Older frontends answer with `state`, newer ones with `data`.
      const state = String(fields.data ?? fields.state)
      if (states.has(state)) return state as LabelState
      throw unavailable(sink, `the state of label ${label} is ${text.slice(0, 200)}`)
    },
    async commit(form, txnId) {
      const { fields } = await finish(form, txnId, 'commit')
      if (String(fields.status).toLowerCase() === 'success') return true
      return /is already (committed|visible)/i.test(String(fields.msg))
    },
    async abort(form, txnId) {
      await finish(form, txnId, 'abort')
    },
    async probe(form, label, rows) {
      const answer = await load(form, label, () => piecesOf(rows))
      if (answer === null) throw unavailable(sink, `label ${label} is taken`)
      if ('error' in answer) return answer
      await finish(form, answer.txnId, 'abort').catch(unlessRetryable)
      return null
    },
  }
}

async function* piecesOf(rows: readonly string[]): AsyncIterable<Buffer> {
  for (let at = 0; at < rows.length; at += rowsPerPiece) yield Buffer.from(rows.slice(at, at + rowsPerPiece).join(''))
}

/** For what may fail for now: null then. */
export function unlessRetryable(error: unknown): null {
  if (isPawlError(error) && error.kind === 'Retryable') return null
  throw error
}

/** Null: the label is taken, by whom is not said. */
async function answerOf(
  { fields, text }: DorisAnswer,
  sink: string,
  form: DorisForm,
): Promise<PreparedLoad | LoadRefusal | null> {
  const message = String(fields.Message ?? fields.msg ?? '')
  switch (fields.Status) {
    case 'Success': {
      const txnId = /"TxnId"\s*:\s*(\d+)/.exec(text)?.[1]
      if (txnId === undefined) throw unavailable(sink, 'a prepared load has no transaction id')
      return { txnId }
    }
    case 'Label Already Exists': {
      const txnId = /relate to txn \[(\d+)\]/.exec(message)?.[1]
      return txnId === undefined ? null : { txnId }
    }
    case 'Fail':
      return refusal(sink, form, message, String(fields.ErrorURL ?? ''))
    default:
      throw unavailable(sink, `a load ended as ${text.slice(0, 300)}`)
  }
}

async function refusal(sink: string, { table }: DorisForm, message: string, errorUrl: string): Promise<LoadRefusal> {
  const quality = /too many filtered rows|DATA_QUALITY_ERROR|Encountered unqualified data/i.test(message)
  const schema = /unknown (table|column|database)|does ?n[o']t exist|not found in table|no such column/i.test(message)
  if (!quality && !schema) throw unavailable(sink, message)
  const log = quality ? await errorLogAt(errorUrl) : ''
  const reason = `${message}${log === '' ? '' : `: ${log.slice(0, errorLogChars)}`}`
  const code = quality ? 'ROWS_REFUSED' : 'SINK_SCHEMA_INVALID'
  const error = new PawlError(code, `sink ${sink}, table ${table}: ${reason}`, { sink, table, reason })
  if (!quality) throw error
  return { error, log }
}

/** Which rows and columns, Doris says at an address of its own; a refusal without that is still one. */
async function errorLogAt(errorUrl: string): Promise<string> {
  try {
    const answer = await fetch(errorUrl, { signal: AbortSignal.timeout(errorLogMs) })
    return answer.ok ? (await answer.text()).trim().slice(0, errorLogCharsMax) : `see ${errorUrl}`
  } catch {
    return errorUrl === '' ? '' : `see ${errorUrl}`
  }
}

/** The error of a Doris that cannot do it now. */
export function unavailable(sink: string, reason: string): PawlError {
  return new PawlError('SINK_UNAVAILABLE', `Doris of sink ${sink}: ${reason}`, { sink, reason })
}

function parts({ table }: DorisForm): readonly [database: string, table: string] {
  const [database, name] = table.split('.')
  return [encodeURIComponent(database!), encodeURIComponent(name!)]
}

const databaseOf = (form: DorisForm) => parts(form)[0]
