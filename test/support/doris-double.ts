/**
 * A double of Apache Doris's HTTP side, from its documentation: a frontend that redirects, a backend that loads.
 *
 * Strict where the real one is: credentials at both ends, `Expect: 100-continue`, the form of labels, one live load a
 * label in a database, states of transactions and the words in which it answers. A refused load is an aborted one; one
 * without rows is refused, too. It has clocks of its own: prepared
 * loads may time out, labels may be forgotten. What it knows outlives `stop` and `start`, as the frontend's journal
 * does. Tests choose what happens to the requests that come next.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type DorisRow, isTooBad, parseLoad, type TableModel } from './doris-loads.ts'

type TxnState = 'PREPARE' | 'PRECOMMITTED' | 'COMMITTED' | 'VISIBLE' | 'ABORTED'

interface Txn {
  readonly id: number
  readonly label: string
  readonly table: string
  readonly rows: readonly DorisRow[]
  state: TxnState
}

/** What happens to a request instead of what should; `deed` names the request. */
export interface DorisMisdeed {
  readonly deed: 'load' | 'commit' | 'abort' | 'state'
  /** `lost`: done, and the connection cut. `never`: cut before. `busy`: refused for now. `away`: status 500. */
  readonly does: 'lost' | 'never' | 'busy' | 'away'
}

/** The double, and what tests do to it. */
export interface DorisDouble {
  /** As users write it. */
  readonly url: string
  readonly misdeeds: DorisMisdeed[]
  /** Every request that arrived, as `METHOD path`. */
  readonly requests: string[]
  createTable(name: string, model: TableModel): void
  /** Visible rows, of a unique table the newest of each key. */
  rows(table: string): readonly DorisRow[]
  txns(label?: RegExp): readonly Pick<Txn, 'id' | 'label' | 'state'>[]
  /** Prepared loads take too long: aborted, as after `stream_load_default_precommit_timeout_second`. */
  expirePrepared(): void
  /** Labels of ended loads are forgotten, as after `streaming_label_keep_max_second`; prepared ones are aborted first. */
  forgetLabels(): void
  copyOf(table: string): () => void
  /** How many refused rows an error log shows: what a real one does not promise. */
  logs: number
  /** Cuts the nth request from now on; the result ends that, and tells whether it came. */
  cut(nth: number, when: 'before' | 'after'): () => boolean
  stop(): Promise<void>
  start(): Promise<void>
}

const user = 'loader'
const password = 'p@ss:word'
const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** A double that runs. */
export async function dorisDouble(): Promise<DorisDouble> {
  const tables = new Map<string, TableModel>()
  const visible = new Map<string, readonly DorisRow[]>()
  const txns = new Map<number, Txn>()
  const errorLogs = new Map<number, string>()
  const misdeeds: DorisMisdeed[] = []
  const requests: string[] = []
  let ids = 1000
  let cut: { left: number; readonly when: 'before' | 'after' } | null = null
  let frontend: Server | null = null
  let backend: Server | null = null
  let [frontendPort, backendPort] = [0, 0]

  const liveUnder = (label: string) => [...txns.values()].find((txn) => txn.label === label && txn.state !== 'ABORTED')
  const publish = (txn: Txn) => {
    txn.state = 'VISIBLE'
    visible.set(txn.table, tables.get(txn.table)!.merge(visible.get(txn.table) ?? [], txn.rows))
  }
  const load = (table: string, headers: IncomingMessage['headers'], body: string): object => {
    const label = String(headers.label)
    if (!/^[-_A-Za-z0-9]{1,128}$/.test(label)) return { Status: 'Fail', Message: `Label format error: ${label}` }
    const model = tables.get(table)
    if (model === undefined) return { Status: 'Fail', Message: `errCode = 2, detailMessage = unknown table, ${table}` }
    const taken = liveUnder(label)
    if (taken !== undefined) {
      const status = /^P/.test(taken.state) ? 'RUNNING' : 'FINISHED'
      const Message = `errCode = 2, detailMessage = Label [${label}] has already been used, relate to txn [${taken.id}]`
      return { TxnId: -1, Label: label, Status: 'Label Already Exists', ExistingJobStatus: status, Message }
    }
    const parsed = parseLoad(model, headers, body)
    const numbers = { NumberTotalRows: parsed.rows.length + parsed.faults.length, NumberLoadedRows: parsed.rows.length }
    const txn: Txn = { id: ids++, label, table, rows: parsed.rows, state: 'ABORTED' }
    txns.set(txn.id, txn)
    if (isTooBad(parsed, headers)) {
      errorLogs.set(txn.id, parsed.faults.slice(0, double.logs).join('\n'))
      const ErrorURL = `http://127.0.0.1:${backendPort}/api/_load_error_log?file=${txn.id}`
      const Message = '[DATA_QUALITY_ERROR]too many filtered rows'
      return { TxnId: txn.id, Label: label, Status: 'Fail', Message, ...numbers, ErrorURL }
    }
    if (parsed.rows.length === 0)
      return { TxnId: txn.id, Label: label, Status: 'Fail', Message: 'all partitions have no load data', ...numbers }
    const twoPhase = headers.two_phase_commit === 'true'
    txn.state = 'PRECOMMITTED'
    if (!twoPhase) publish(txn)
    return { TxnId: txn.id, Label: label, TwoPhaseCommit: String(twoPhase), Status: 'Success', Message: 'OK' }
  }
  const finish = (headers: IncomingMessage['headers']): object => {
    const id = Number(headers.txn_id)
    const txn = txns.get(id)
    const fail = (detail: string) => ({ status: 'ANALYSIS_ERROR', msg: `errCode = 2, detailMessage = ${detail}` })
    if (txn === undefined) return fail(`transaction [${id}] not found`)
    if (txn.state === 'ABORTED') return fail(`transaction [${id}] is already aborted. abort reason: User Abort`)
    if (txn.state !== 'PRECOMMITTED') return fail(`transaction [${id}] is already ${txn.state}, not pre-committed.`)
    if (headers.txn_operation === 'commit') publish(txn)
    else if (headers.txn_operation === 'abort') txn.state = 'ABORTED'
    else return fail(`transaction operation should be 'commit' or 'abort'`)
    return { status: 'Success', msg: `transaction [${id}] ${headers.txn_operation} successfully.` }
  }
  const state = (label: string) => {
    const found = liveUnder(label) ?? [...txns.values()].find((txn) => txn.label === label)
    return { msg: 'success', code: 0, data: found?.state ?? 'UNKNOWN', count: 0 }
  }

  const serve = async (request: IncomingMessage, response: ServerResponse, atBackend: boolean) => {
    const url = new URL(request.url!, 'http://doris')
    requests.push(`${request.method} ${url.pathname}`)
    if (url.pathname === '/api/_load_error_log')
      return void response.end(errorLogs.get(Number(url.searchParams.get('file'))))
    if (request.headers.authorization !== authorization) return void response.writeHead(401).end('need auth')
    const deed = deedOf(request, url)
    if (deed === 'load' && !atBackend) {
      const location = `http://${user}:${encodeURIComponent(password)}@127.0.0.1:${backendPort}${url.pathname}`
      return void response.writeHead(307, { location }).end()
    }
    if (cut !== null && cut.left-- === 0) misdeeds.push({ deed, does: cut.when === 'before' ? 'never' : 'lost' })
    const at = misdeeds.findIndex((misdeed) => misdeed.deed === deed)
    const misdeed = at < 0 ? null : misdeeds.splice(at, 1)[0]!
    if (misdeed?.does === 'never') return void request.socket.destroy()
    if (misdeed?.does === 'away') return void response.writeHead(500).end('the frontend is not ready')
    const answer = misdeed?.does === 'busy' ? busy(deed) : await done(request, response, url, deed)
    if (misdeed?.does === 'lost') return void request.socket.destroy()
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }
  const done = async (request: IncomingMessage, response: ServerResponse, url: URL, deed: DorisMisdeed['deed']) => {
    if (deed === 'state') return state(url.searchParams.get('label')!)
    if (deed !== 'load') return finish(request.headers)
    if (request.headers.expect !== '100-continue') return { Status: 'Fail', Message: 'There is no 100-continue header' }
    response.writeContinue()
    let body = ''
    for await (const piece of request.setEncoding('utf8')) body += piece
    const [, , database, table] = url.pathname.split('/')
    return load(`${database}.${table}`, request.headers, body)
  }
  const listen = async (port: number, atBackend: boolean) => {
    const answer = (request: IncomingMessage, response: ServerResponse) =>
      // Whoever sends rows may go away in the middle of them.
      void serve(request, response, atBackend).catch(() => request.socket.destroy())
    const server = createServer(answer).on('checkContinue', answer)
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    return server
  }
  const double: DorisDouble = {
    get url() {
      return `http://${user}:${encodeURIComponent(password)}@127.0.0.1:${frontendPort}`
    },
    misdeeds,
    requests,
    logs: 3,
    createTable: (name, model) => void tables.set(name, model),
    rows: (table) => visible.get(table) ?? [],
    txns: (label = /./) => [...txns.values()].filter((txn) => label.test(txn.label)),
    expirePrepared() {
      for (const txn of txns.values()) if (txn.state === 'PRECOMMITTED') txn.state = 'ABORTED'
    },
    forgetLabels() {
      double.expirePrepared()
      txns.clear()
    },
    copyOf(table) {
      const copy = visible.get(table) ?? []
      return () => void visible.set(table, copy)
    },
    cut(nth, when) {
      const mine = { left: nth, when }
      cut = mine
      return () => {
        cut = null
        return mine.left < 0
      }
    },
    async stop() {
      for (const server of [frontend, backend]) {
        const closed = new Promise((resolve) => server?.close(resolve) ?? resolve(null))
        server?.closeAllConnections()
        await closed
      }
      frontend = null
      backend = null
    },
    async start() {
      frontend ??= await listen(frontendPort, false)
      backend ??= await listen(backendPort, true)
      frontendPort = (frontend.address() as AddressInfo).port
      backendPort = (backend.address() as AddressInfo).port
    },
  }
  await double.start()
  return double
}

function deedOf({ headers }: IncomingMessage, { pathname }: URL): DorisMisdeed['deed'] {
  if (pathname.endsWith('/_stream_load')) return 'load'
  if (pathname.endsWith('/get_load_state')) return 'state'
  return headers.txn_operation === 'abort' ? 'abort' : 'commit'
}

function busy(deed: DorisMisdeed['deed']): object {
  const Message = 'errCode = 2, detailMessage = current running txns on db 10006 is 100, larger than limit 100'
  return deed === 'load' ? { Status: 'Fail', Message } : { status: 'INTERNAL_ERROR', msg: 'failed to get master' }
}
