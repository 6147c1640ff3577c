/**
 * Loaded before each function of a test: its calls go by way of the test's proxy, and say which function made them.
 *
 * Only the environment is set, as any deployment could: the endpoint, and the application id of the user agent. The
 * proxy is named in a file, since the emulator whose functions these are starts before it.
 */
import { existsSync, readFileSync } from 'node:fs'

const { PAWL_PROXY_FILE: file, AWS_LAMBDA_FUNCTION_NAME: name } = process.env
if (name && file && existsSync(file)) {
  process.env.AWS_ENDPOINT_URL = readFileSync(file, 'utf8')
  process.env.AWS_SDK_UA_APP_ID = /Functions([A-Z][a-z]+)Func/.exec(name)?.[1]?.toLowerCase() ?? 'unknown'
}
