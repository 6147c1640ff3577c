/**
 * The double of Doris in a process of its own, since it keeps every row that it was sent.
 *
 * Sends its address to the parent once it runs, and answers each message, the name of a table, with its visible rows.
 */
import { dorisDouble } from './doris-double.ts'
import { duplicateModel, uniqueModel } from './doris-loads.ts'

const anything = () => true
const columns = { k: anything, v: anything, ts: anything }

const double = await dorisDouble()
double.createTable('db.appended', duplicateModel(columns))
double.createTable('db.keyed', uniqueModel(['k'], columns))
process.on('message', (table: string) => process.send!({ rows: double.rows(table).length }))
process.on('disconnect', () => process.exit(0))
process.send!({ url: double.url })
