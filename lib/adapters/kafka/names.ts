/**
 * Names that Pawl leaves in a Kafka cluster: transactional ids and control topics.
 *
 * A cluster is shared, so every name carries the stage, the pipeline and the sink, and two different triples never
 * give one name: a hyphen inside a part is doubled, one at its edge and every other character outside
 * `[A-Za-z0-9]` is written `_` and two hex digits. The set is bounded: one id for each lane, whatever the epoch.
 */
import { createHash } from 'node:crypto'

/** Kafka's limit for the name of a topic. */
const topicCharactersMax = 249

/** Whose names they are. */
export interface SinkIdentity {
  /** Environment, such as `dev`. */
  readonly stage: string
  readonly pipeline: string
  readonly sink: string
}

/** `pawl-<stage>-<pipeline>-<sink>-<lane>`. */
export function transactionalId({ stage, pipeline, sink }: SinkIdentity, lane: number): string {
  return shortened(['pawl', ...[stage, pipeline, sink].map(escaped), String(lane)].join('-'))
}

/** `<prefix>-<stage>-<pipeline>-<sink>`, a topic with one partition a lane. */
export function controlTopic({ stage, pipeline, sink }: SinkIdentity, prefix = 'pawl-control'): string {
  return shortened([prefix, ...[stage, pipeline, sink].map(escaped)].join('-'))
}

function escaped(part: string): string {
  const bytes = Buffer.from(part)
  let out = ''
  for (const [at, byte] of bytes.entries()) {
    const character = String.fromCharCode(byte)
    const edge = at === 0 || at === bytes.length - 1
    if (/[A-Za-z0-9]/.test(character)) out += character
    else if (character === '-' && !edge) out += '--'
    else out += `_${byte.toString(16).padStart(2, '0')}`
  }
  return out === '' ? '_' : out
}

function shortened(name: string): string {
  if (name.length <= topicCharactersMax) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 32)
  return `${name.slice(0, topicCharactersMax - digest.length - 1)}-${digest}`
}
