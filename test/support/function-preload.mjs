/**
 * Loaded before each function of a test: its calls go by way of the test's proxy, and say which function made them.
 *
 * Only the environment is set, as any deployment could: the endpoint, and the application id of the user agent. The
 * proxy is named in a file, since the emulator whose functions these are starts before it.
 */
import { existsSync, readFileSync } from 'node:fs'

/** Names of functions are cut at 64 characters, right behind the word that counts. */
const names = /Functions(Trigger|Plan|Operate|Precommit|Commit|Promote|Finalize|Abort|Collect)/

const { PAWL_PROXY_FILE: file, AWS_LAMBDA_FUNCTION_NAME: name } = process.env
if (name && file && existsSync(file)) {
  process.env.AWS_ENDPOINT_URL = readFileSync(file, 'utf8')
  process.env.AWS_SDK_UA_APP_ID = names.exec(name)?.[1]?.toLowerCase() ?? 'unknown'
}
