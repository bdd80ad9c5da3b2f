import type { EventSink } from '../../src/worker/http/event-log.ts'
import type { Log } from '../../src/worker/http/log.ts'

/** A log whose events go to a sink at once, each alone. */
export function loggingTo(sink: EventSink, now: () => number = () => 0): Log {
  return (event, fields = {}) => sink([{ event, fields, at: now() }])
}
