/**
 * The saved queries: questions that a person has at 3 a.m., over the log lines of all functions.
 *
 * Lines are JSON with one event each; short lines of `event: 'measure'` only carry a metric and are left out.
 */

/** A query of CloudWatch Logs Insights. */
export interface SavedQuery {
  /** Behind stage and pipeline in the console's tree. */
  readonly name: string
  readonly text: string
}

/** All saved queries of a pipeline. */
export function queriesOf(pipeline: string): readonly SavedQuery[] {
  const events = `filter pipeline = "${pipeline}" and event != "measure"`
  const query = (name: string, ...lines: readonly string[]): SavedQuery => ({ name, text: lines.join('\n| ') })
  return [
    query(
      'story of an epoch',
      'fields @timestamp, event, step, stage, task, sink, lane, ms, next, code, message, attempt, run',
      events,
      'filter epoch = 1',
      'sort @timestamp asc',
      'limit 1000',
    ),
    query(
      'story of a run',
      'fields @timestamp, epoch, event, step, task, ms, next, reason, code, message, attempt',
      events,
      'filter run = "id of the run"',
      'sort @timestamp asc',
      'limit 1000',
    ),
    query('what failed', ...failures(events), 'limit 100'),
    query(
      'slow steps',
      events,
      'filter event = "step"',
      'stats count(*) as calls, avg(ms), pct(ms, 90), max(ms) by step, next',
      'sort calls desc',
    ),
    query(
      'what it used',
      events,
      'filter event = "step"',
      'stats sum(Transitions), sum(StoreWrites), sum(StoreReads), sum(ReadUnits), sum(WriteUnits), sum(Throttles), sum(ms) by step',
    ),
  ]
}

/** Lines that carry the code of an error, newest first. */
export function failures(events: string): readonly string[] {
  return [
    'fields @timestamp, event, epoch, step, task, code, message, attempt, run',
    events,
    'filter code like /[A-Z]/',
    'sort @timestamp desc',
  ]
}
