/**
 * Where the package lies, from its sources and from its compiled form alike.
 *
 * The functions are bundled from their sources, which the package ships, together with the user's pipeline file.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Directory of the nearest `package.json` named `pawl`. */
export function packageRoot(): string {
  for (let directory = dirname(fileURLToPath(import.meta.url)); ; directory = dirname(directory)) {
    const manifest = join(directory, 'package.json')
    if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).name === 'pawl') return directory
    if (directory === dirname(directory)) throw new Error(`${import.meta.url} lies in no package named pawl`)
  }
}
