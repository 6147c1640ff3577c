/**
 * What tests of the Kafka sink share: a topic spec with defaults.
 */
import { text } from '../../lib/model/serde.ts'
import type { TopicSpec } from '../../lib/ports/spec.ts'

/** Text keys and values, one lane, no route. */
export function topicSpec(topic: string, spec: Partial<TopicSpec<unknown, unknown>> = {}): TopicSpec<unknown, unknown> {
  return {
    kind: 'topic',
    topic,
    key: text() as TopicSpec<unknown, unknown>['key'],
    value: text() as TopicSpec<unknown, unknown>['value'],
    start: { at: 'earliest' },
    isolation: 'read_committed',
    onLostOffsets: 'fail',
    group: null,
    lanes: 1,
    route: null,
    headers: null,
    cluster: null,
    ...spec,
  }
}
