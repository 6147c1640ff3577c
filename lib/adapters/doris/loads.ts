/**
 * Two-phase stream loads: prepared under a label, committed or aborted by transaction id, looked up by label.
 *
 * Of all loads under a label at most one can be prepared or committed at a time; an aborted one frees its label.
 * Sources: Doris's documentation of Stream Load, its two-phase commit and `get_load_state`; messages as in
 * `DatabaseTransactionMgr` of the frontend. An answer that is not understood is no success and no failure: the
 * caller reads the state of the label.
 */
import { PawlError } from '../../model/errors.ts'
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
}

const states: ReadonlySet<string> = new Set([
  'PREPARE',
  'PRECOMMITTED',
  'COMMITTED',
  'VISIBLE',
  'ABORTED',
  'UNKNOWN',
] satisfies LabelState[])

const errorLogMs = 5000
const errorLogChars = 300

/** Loads through these requests; `timeoutMs` bounds what Doris itself waits. */
export function dorisLoads(sink: string, http: DorisHttp, timeoutMs: number): DorisLoads {
  const finish = async (form: DorisForm, txnId: string, operation: 'commit' | 'abort') => {
    const headers = { txn_id: txnId, txn_operation: operation }
    return http({ method: 'PUT', path: `/api/${databaseOf(form)}/_stream_load_2pc`, headers })
  }
  return {
    async prepare(form, label, body) {
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
      return prepared(answer, sink, form)
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
  }
}

async function prepared({ fields, text }: DorisAnswer, sink: string, form: DorisForm): Promise<PreparedLoad | null> {
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
      throw await refusal(sink, form, message, String(fields.ErrorURL ?? ''))
    default:
      throw unavailable(sink, `a load ended as ${text.slice(0, 300)}`)
  }
}

async function refusal(sink: string, { table }: DorisForm, message: string, errorUrl: string): Promise<PawlError> {
  const quality = /too many filtered rows|DATA_QUALITY_ERROR|Encountered unqualified data/i.test(message)
  const schema = /unknown (table|column|database)|does ?n[o']t exist|not found in table|no such column/i.test(message)
  if (!quality && !schema) return unavailable(sink, message)
  const row = quality ? await firstError(errorUrl) : ''
  const reason = `${message}${row === '' ? '' : `: ${row}`}`
  const code = quality ? 'ROWS_REFUSED' : 'SINK_SCHEMA_INVALID'
  return new PawlError(code, `sink ${sink}, table ${table}: ${reason}`, { sink, table, reason })
}

/** Which row and column, Doris says at an address of its own; a refusal without that is still one. */
async function firstError(errorUrl: string): Promise<string> {
  try {
    const answer = await fetch(errorUrl, { signal: AbortSignal.timeout(errorLogMs) })
    return answer.ok ? (await answer.text()).trim().slice(0, errorLogChars) : `see ${errorUrl}`
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
