import { MAX_SPANS, OPERATION_SECONDS, type Span } from '../../protocol/telemetry.ts'
import type { EventSink, LoggedEvent } from '../http/event-log.ts'
import type { LogEvent, LogFields } from '../http/log.ts'

/** The trace that a request belongs to. */
interface Trace {
  readonly traceId: string
  /** The caller's span; null where the trace begins here. */
  readonly parentId: string | null
}

/** A traced request whose spans are not complete. */
interface Begun extends Trace {
  readonly spanId: string
  readonly startedAt: number
  /** When the current step began. */
  stepAt: number
  /** When the attempt that served began. */
  servedFrom?: number
  /** Whether the request span has ended. A whole answer is settled before it is sent; a stream is answered first. */
  answered: boolean
  settled: boolean
  /** The name of the customer, where the operator wants it in traces. */
  customer?: string
}

/** W3C Trace Context, version 00; additions of later versions are ignored. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/
const NO_ID = /^0+$/

/** Maximum number of traced requests, including answered ones whose streams continue. */
const MAX_OPEN = 10_000

/** The longest attribute that the daemon takes. */
const MAX_NAME_CHARACTERS = 256

/** Builds the spans of traced requests from the events that they log. */
export class Traces {
  readonly #now: () => number
  readonly #catchUp: () => void
  readonly #open = new Map<string, Begun>()
  #spans: Span[] = []

  /**
   * @param now ms
   * @param catchUp passes all events logged so far to `note`; called before spans are taken
   */
  constructor(now: () => number, catchUp: () => void = () => {}) {
    this.#now = now
    this.#catchUp = catchUp
  }

  /** Starts the span of a request, as part of the caller's trace if there is one. */
  begin(requestId: string, traceparent: string | null): void {
    const hex = requestId.replaceAll('-', '')
    const trace = readTraceparent(traceparent) ?? { traceId: hex, parentId: null }
    const now = this.#now()
    // The request's id is random, so half of it names its span.
    const times = { startedAt: now, stepAt: now, answered: false, settled: false }
    this.#open.set(requestId, { ...trace, spanId: hex.slice(16), ...times })
    const [oldest] = this.#open.keys()
    if (this.#open.size > MAX_OPEN && oldest !== undefined) this.#open.delete(oldest)
  }

  /** Adds the customer's name to the spans of a request that end from now on. */
  nameCustomer(requestId: string, name: string): void {
    const begun = this.#open.get(requestId)
    if (begun !== undefined) begun.customer = name.slice(0, MAX_NAME_CHARACTERS)
  }

  /** Turns events that end a step into spans. */
  readonly note: EventSink = (events) => {
    if (this.#open.size === 0) return
    for (const event of events) this.#noteOne(event)
  }

  #noteOne({ event, fields, at: now }: LoggedEvent): void {
    const begun = this.#open.get(fields.request_id ?? '')
    const step = STEPS[event]
    if (begun === undefined || step === undefined) return
    if (event === 'settled' && begun.settled) return
    if (event === 'attempt_served') begun.servedFrom = begun.stepAt
    const { name, kind, attributes, error } = step(fields)
    const server = kind === 'server'
    const attempt = `${event}${fields.attempt ?? ''}`
    this.#add({
      trace_id: begun.traceId,
      span_id: server ? begun.spanId : childId(begun.spanId, attempt),
      parent_id: server ? begun.parentId : begun.spanId,
      name,
      kind,
      start: server ? begun.startedAt : begun.stepAt,
      end: now,
      error,
      attributes: {
        'cmr.request_id': fields.request_id ?? '',
        ...(begun.customer !== undefined && { 'cmr.customer_name': begun.customer }),
        ...(event === 'settled' && operationSeconds(begun, now)),
        ...attributes,
      },
    })
    begun.stepAt = now
    begun.settled ||= event === 'settled'
    begun.answered ||= server
    const refused = server && (fields.status ?? 0) >= 400
    if (refused || (begun.settled && begun.answered)) this.#open.delete(fields.request_id ?? '')
  }

  /** The spans since the last call. */
  take(): Span[] {
    this.#catchUp()
    const spans = this.#spans
    this.#spans = []
    return spans
  }

  #add(span: Span): void {
    if (this.#spans.length < MAX_SPANS) this.#spans.push(span)
  }
}

interface Step {
  readonly name: string
  readonly kind: Span['kind']
  readonly error: boolean
  readonly attributes: Span['attributes']
}

const providerOf = (route: string) => route.split('/').at(-2) ?? ''
const modelOf = (route: string) => route.split('/').at(-1) ?? ''

/** Values of `gen_ai.operation.name`. The conventions have none for transcription, so its modality is used. */
const OPERATIONS: Readonly<Record<string, string>> = { embedding: 'embeddings' }

/**
 * The span of each event that ends a step, with OpenTelemetry's attribute names for HTTP and, where they fit, for generative
 * models.
 */
const STEPS: Partial<Record<LogEvent, (fields: LogFields) => Step>> = {
  request: ({ endpoint = 'none', method = '', status = 0, code }) => ({
    name: `${method} ${endpoint}`,
    kind: 'server',
    error: status >= 500,
    attributes: {
      'http.request.method': method,
      'http.route': endpoint,
      'http.response.status_code': status,
      ...(code !== undefined && { 'error.type': code }),
    },
  }),
  attempt_served: (fields) => attemptStep(fields),
  attempt_failed: (fields) => attemptStep(fields, fields.failure ?? 'unknown'),
  settled: ({ route = '', modality = '', receipt = false, ...tokens }) => ({
    name: 'settle',
    kind: 'internal',
    error: false,
    attributes: {
      'gen_ai.operation.name': OPERATIONS[modality] ?? modality,
      'gen_ai.provider.name': providerOf(route),
      'gen_ai.request.model': modelOf(route),
      'gen_ai.response.model': modelOf(route),
      'gen_ai.usage.input_tokens': tokens.prompt_tokens ?? 0,
      'gen_ai.usage.output_tokens': tokens.completion_tokens ?? 0,
      'cmr.receipt': receipt,
    },
  }),
}

/** The time from the start of the attempt that served until its exchange was settled. */
function operationSeconds({ servedFrom }: Begun, now: number): Span['attributes'] {
  return servedFrom === undefined ? {} : { [OPERATION_SECONDS]: (now - servedFrom) / 1000 }
}

function attemptStep(
  { route = '', attempt = 0, first_delta_ms: first, failover }: LogFields,
  failure?: string,
): Step {
  return {
    name: `attempt ${modelOf(route)}`,
    kind: 'client',
    error: failure !== undefined,
    attributes: {
      'gen_ai.provider.name': providerOf(route),
      'gen_ai.request.model': modelOf(route),
      'cmr.route': route,
      'cmr.attempt': attempt,
      ...(failover !== undefined && { 'cmr.failover': failover }),
      ...(first !== undefined && { 'gen_ai.response.time_to_first_chunk': first / 1000 }),
      ...(failure !== undefined && { 'error.type': failure }),
    },
  }
}

/** The trace of the caller (https://www.w3.org/TR/trace-context/); undefined where there is none or it is malformed. */
function readTraceparent(text: string | null): Trace | undefined {
  const [, traceId, parentId] = TRACEPARENT.exec(text?.trim() ?? '') ?? []
  if (traceId === undefined || parentId === undefined) return undefined
  return NO_ID.test(traceId) || NO_ID.test(parentId) ? undefined : { traceId, parentId }
}

/** The span id of a step: the request's span id hashed with the name of the step (FNV-1a, 64 bits). */
function childId(spanId: string, step: string): string {
  let hash = BigInt(`0x${spanId}`) ^ 0xcbf29ce484222325n
  for (const character of step) {
    hash ^= BigInt(character.codePointAt(0) ?? 0)
    hash = BigInt.asUintN(64, hash * 0x100000001b3n)
  }
  return hash.toString(16).padStart(16, '0')
}
