import type { EventSink } from '../http/event-log.ts'
import type { LogEvent, LogFields } from '../http/log.ts'
import { Counter, Histogram } from './families.ts'

const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600]

/** The counter of faults; its label `part` names the part that failed. */
export const FAULTS_METRIC = 'cmr_faults_total'

/**
 * The worker's metrics, derived from the events it logs; neither can contain confidential data. Label values come
 * from the configuration and from fixed tables, so their number is bounded.
 */
export class Metrics {
  readonly #requests = new Counter('cmr_requests_total', 'Answered requests.')
  readonly #duration = new Histogram(
    'cmr_request_duration_seconds',
    'Time until the response started.',
    REQUEST_SECONDS,
  )
  readonly #attempts = new Counter('cmr_attempts_total', 'Tries of routes, by outcome.')
  readonly #failovers = new Counter(
    'cmr_failovers_total',
    'Requests that an alternative of the caller served.',
  )
  readonly #firstDelta = new Histogram(
    'cmr_first_delta_seconds',
    'Time of an attempt until its first delta.',
    REQUEST_SECONDS,
  )
  readonly #cuts = new Counter(
    'cmr_streams_cut_total',
    'Streams that had begun and did not come to their end.',
  )
  readonly #tokens = new Counter('cmr_tokens_total', 'Settled tokens.')
  readonly #settles = new Histogram(
    'cmr_settle_seconds',
    'Time to price, sign and store an exchange.',
    REQUEST_SECONDS,
  )
  readonly #rowWaits = new Histogram(
    'cmr_row_wait_seconds',
    'Waits of ledger operations for a row that another transaction kept locked.',
    REQUEST_SECONDS,
  )
  readonly #receipts = new Counter(
    'cmr_receipts_total',
    'Settled exchanges, by whether they have a receipt and when it was signed.',
  )
  readonly #estimates = new Counter('cmr_usage_estimated_total', 'Exchanges billed by an estimate.')
  readonly #caps = new Counter(
    'cmr_usage_capped_total',
    'Exchanges in which a provider claimed more than the request can have used.',
  )
  readonly #replays = new Counter(
    'cmr_answers_replayed_total',
    'Repeats under the same Idempotency-Key that got the answer that was kept.',
  )
  readonly #faults = new Counter(FAULTS_METRIC, 'Faults of parts the worker depends on.')

  #settlementFaults = 0

  readonly #handlers: Partial<Record<LogEvent, (fields: LogFields) => void>> = {
    request: ({ endpoint = 'none', status = 0, code = '', duration_ms = 0 }) => {
      this.#requests.add({ endpoint, status, code })
      this.#duration.observe({ endpoint }, duration_ms / 1000)
    },
    attempt_failed: ({ route = '', failure = '' }) =>
      this.#attempts.add({ route, outcome: failure }),
    attempt_served: ({ route = '', failover = false, first_delta_ms }) => {
      this.#attempts.add({ route, outcome: 'served' })
      if (failover) this.#failovers.add({ route })
      if (first_delta_ms !== undefined) this.#firstDelta.observe({ route }, first_delta_ms / 1000)
    },
    stream_cut: ({ route = '', failure = '' }) => this.#cuts.add({ route, failure }),
    settled: ({
      route = '',
      prompt_tokens = 0,
      completion_tokens = 0,
      receipt = false,
      signed = '',
      ...rest
    }) => {
      this.#tokens.add({ route, kind: 'prompt' }, prompt_tokens)
      this.#tokens.add({ route, kind: 'completion' }, completion_tokens)
      this.#receipts.add({ receipt: String(receipt), signed })
      this.#settles.observe({}, (rest.duration_ms ?? 0) / 1000)
    },
    usage_estimated: ({ route = '' }) => this.#estimates.add({ route }),
    usage_capped: ({ route = '' }) => this.#caps.add({ route }),
    answer_replayed: () => this.#replays.add({}),
    kept_answer_unreadable: () => this.#faults.add({ part: 'kept_answer', failure: 'unreadable' }),
    settle_quarantined: () => this.#settlementFault('quarantined'),
    release_failed: ({ code = '' }) => this.#faults.add({ part: 'release', failure: code }),
    settle_failed: ({ code = '' }) => this.#settlementFault(code),
    webhook_failed: ({ failure = '' }) => this.#faults.add({ part: 'webhook', failure }),
    link_unavailable: ({ failure = '' }) => this.#faults.add({ part: 'link', failure }),
    row_waited: ({ duration_ms = 0 }) => this.#rowWaits.observe({}, duration_ms / 1000),
    storage_unavailable: ({ failure = '' }) => this.#faults.add({ part: 'storage', failure }),
  }

  readonly #catchUp: () => void

  /** @param catchUp passes all events logged so far to the metrics; called before anything is read */
  constructor(catchUp: () => void = () => {}) {
    this.#catchUp = catchUp
  }

  /** The number of settlements that have failed since the last call. */
  takeSettlementFaults(): number {
    this.#catchUp()
    const count = this.#settlementFaults
    this.#settlementFaults = 0
    return count
  }

  #settlementFault(failure: string): void {
    this.#settlementFaults += 1
    this.#faults.add({ part: 'settlement', failure })
  }

  /** Counts events. */
  readonly count: EventSink = (events) => {
    for (const { event, fields } of events) this.#handlers[event]?.(fields)
  }

  /** Everything counted so far, in the Prometheus text format. */
  render(): string {
    this.#catchUp()
    const families = [
      this.#requests,
      this.#duration,
      this.#attempts,
      this.#failovers,
      this.#firstDelta,
      this.#cuts,
      this.#tokens,
      this.#settles,
      this.#rowWaits,
      this.#receipts,
      this.#estimates,
      this.#caps,
      this.#replays,
      this.#faults,
    ]
    return families.map((family) => family.render()).join('')
  }
}
