import type { BatchDeps } from './batching/batcher.ts'
import type { Context } from './context.ts'
import { ENDPOINTS, type Endpoint } from './endpoints.ts'
import { answerDrain } from './drain-endpoint.ts'
import type { Env } from './env.ts'
import { crossOriginHeaders } from './browser-rules.ts'
import type { PresentedKey } from './auth/api-key.ts'
import { KeyGate } from './auth/key-gate.ts'
import { Drains } from './http/drain.ts'
import { errorFields } from './http/error-fields.ts'
import { heldAnswer } from './http/held-answer.ts'
import { Refusals } from './limits/refusals.ts'
import { EventLog } from './http/event-log.ts'
import { jsonLines } from './http/json-lines.ts'
import type { Log } from './http/log.ts'
import { RequestCap, type Permit } from './limits/request-cap.ts'
import { Shutdown } from './limits/shutdown.ts'
import { SourceBudget } from './http/source-budget.ts'
import { exchangeTelemetry } from './link/telemetry-link.ts'
import { HistoryRecorder } from './history/recorder.ts'
import { addCounts } from './history/store.ts'
import { HttpLink } from './link/http-link.ts'
import { HttpCalls, type LinkCalls } from './link/link-calls.ts'
import { MessageBinding } from './link/message-binding.ts'
import { InstanceWatch } from './metrics/instance-watch.ts'
import { Metrics } from './metrics/metrics.ts'
import { Traces } from './metrics/traces.ts'
import { WorkerTelemetry } from './metrics/worker-telemetry.ts'
import { restingNow } from './routing/resting.ts'
import { RequestContexts } from './request-contexts.ts'
import { createRouter } from './router.ts'
import type { RuntimeDeps } from './runtime-deps.ts'
import { pause } from './routing/budget.ts'
import { encryptedExchange, ENCRYPTED_REFUSALS, type EhbpDeps } from './ehbp/encrypted-exchange.ts'
import { sweepAll } from './settle/sweep.ts'
import { SettingsSource } from './settings.ts'
import { openStorageParts, type StorageParts } from './storage-parts.ts'

/** Maximum sweeps per cron trigger: a few thousand rows, within the CPU time a Worker host grants one event. */
const MAX_ROUNDS_PER_TRIGGER = 20

const KEYED_ENDPOINTS = new Set(
  ENDPOINTS.filter(({ audience }) => audience === 'keyed').map(({ name }) => name),
)

/** The worker of one isolate: holds its bindings, which it opens once, and its caches, and handles each event. */
export class App {
  readonly #deps: RuntimeDeps & BatchDeps
  readonly #log: Log
  readonly #link: HttpLink
  readonly #ehbp: EhbpDeps
  readonly #settings: SettingsSource
  readonly #router = createRouter()
  readonly #cap: RequestCap
  readonly #gate: KeyGate
  readonly #drains = new Drains()
  readonly #shutdown = new Shutdown()
  readonly #env: Env
  readonly #metrics: Metrics
  readonly #traces: Traces
  readonly #telemetry: WorkerTelemetry
  readonly #history: HistoryRecorder
  readonly #watch: InstanceWatch
  readonly #contexts: RequestContexts
  /** Opened at the first use, so that a missing binding fails each request with an error and not the whole isolate. */
  #opened: StorageParts | undefined

  constructor(env: Env, deps: RuntimeDeps) {
    this.#env = env
    this.#deps = { ...deps, openRequests: () => this.#cap.openRequests }
    const catchUp = () => events.catchUp()
    this.#metrics = new Metrics(catchUp)
    this.#traces = new Traces(deps.now, catchUp)
    this.#history = this.#openHistory(deps)
    const events = new EventLog({
      ...deps,
      pause,
      // Only a file: other hosts may count each write as one log entry and attribute it to the request that wrote it.
      joins: env.CONSOLE_IS_FILE === true,
      sinks: [
        this.#history.count,
        this.#metrics.count,
        this.#traces.note,
        jsonLines(print),
        () => this.#writeHistorySoon(),
      ],
    })
    this.#log = events.log
    this.#link = new HttpLink(
      this.#linkCalls(),
      this.#deps,
      (failure) => this.#log('link_unavailable', { failure }),
      env.LINK_ORIGIN,
    )
    this.#ehbp = {
      ...deps,
      link: this.#link,
      refusalBudget: new SourceBudget(ENCRYPTED_REFUSALS, deps.now),
      shareRefusals: new Refusals(deps.now),
    }
    this.#watch = new InstanceWatch(deps.newId())
    this.#telemetry = new WorkerTelemetry({
      instance: this.#watch.id,
      metrics: this.#metrics,
      traces: this.#traces,
      states: () => ({
        open_requests: this.#cap.openRequests,
        resting: restingNow(this.#settings.known, deps.now()),
      }),
      send: (report) => exchangeTelemetry(env.LINK, env.LINK_ORIGIN, report),
      pause,
    })
    this.#settings = new SettingsSource(this.#link, this.#log, env.DAEMON_CARRIES ?? 'attested')
    this.#gate = new KeyGate({ ...deps, pause })
    this.#cap = new RequestCap(Number(env.MAX_OPEN_REQUESTS ?? Number.POSITIVE_INFINITY))
    this.#contexts = new RequestContexts(env, {
      ...this.#deps,
      link: this.#link,
      log: this.#log,
      metrics: this.#metrics,
      watch: this.#watch,
      telemetry: this.#telemetry,
      traces: this.#traces,
      openRequests: () => this.#cap.openRequests,
      shutdown: this.#shutdown,
    })
  }

  #openHistory({ now }: RuntimeDeps): HistoryRecorder {
    return new HistoryRecorder({
      now,
      pause,
      isKeyed: (name) => KEYED_ENDPOINTS.has(name),
      store: async (counts) => {
        await addCounts(this.#parts.storage.directory(), counts, now())
      },
    })
  }

  #linkCalls(): LinkCalls {
    const { LINK, LINK_ORIGIN, LINK_TAKES_MESSAGES } = this.#env
    if (LINK_TAKES_MESSAGES !== true) return new HttpCalls(LINK)
    const ended = (count: number) => this.#log('link_messages_ended', { count })
    return new MessageBinding(LINK, this.#deps, ended, LINK_ORIGIN)
  }

  /** Answers one request; never throws. */
  async handle(request: Request, execution: ExecutionContext): Promise<Response> {
    const requestId = this.#deps.newId()
    const startedAt = this.#deps.now()
    const { traces, metrics } = this.#settings.known?.config.service.telemetry ?? {}
    // The daemon derives metrics from spans, so either setting needs them.
    if (traces === true || metrics === true) {
      this.#traces.begin(requestId, request.headers.get('traceparent'))
    }
    const state: RequestState = {
      endpoint: undefined,
      error: undefined,
      permit: undefined,
      key: undefined,
    }
    const answer: Promise<Response> = this.#router.fetch(request, {
      openContext: () => this.#openContext(request, requestId, execution, state),
      matched: (endpoint) => (state.endpoint = endpoint),
      failed: async (error) => {
        // A refused client may read its answer slowly; it must not hold a permit meanwhile.
        state.permit?.leave()
        state.error = await this.#judge(error, state)
        return state.error
      },
      encrypted: (endpoint) => encryptedExchange(request, endpoint, this.#ehbp),
      deliver: (answered) => {
        const held = state.permit && heldAnswer(answered, this.#deps.now, request.signal)
        if (held === undefined) return answered
        state.permit?.keepDuring(held.taken)
        execution.waitUntil(held.taken)
        return held.answer
      },
      drain: (body) => this.#drains.drain(body),
    })
    // When the client disconnects, the runtime would cancel the handler, which must run on to release its resources.
    execution.waitUntil(answer)
    const response = await answer
    state.permit?.leave()
    // A preflight is answered without a context, so the configuration may not be loaded yet, or be stale.
    if (request.method === 'OPTIONS' && state.endpoint?.audience === 'keyed') {
      await this.#settings.current().catch(() => {})
    }
    this.#addHeaders(response.headers, request, requestId, state.endpoint)
    this.#log('request', {
      request_id: requestId,
      method: request.method,
      endpoint: state.endpoint?.name ?? 'none',
      status: response.status,
      duration_ms: this.#deps.now() - startedAt,
      ...(state.error === undefined ? {} : errorFields(state.error)),
    })
    this.#telemetry.reportSoon((work) => execution.waitUntil(work))
    return response
  }

  /**
   * Runs the maintenance of a cron trigger at its scheduled time (ms): sweeps the database. Only D1 needs it; the Durable
   * Object and the PostgreSQL pool schedule their own alarms.
   * @throws StorageUnavailable
   */
  async sweep(now: number): Promise<void> {
    const report = await sweepAll(this.#parts.storage.directory(), now, {
      rounds: MAX_ROUNDS_PER_TRIGGER,
    })
    this.#log('sweep', { count: report.released + report.expired + report.cleared })
  }

  /** Handles the supervisor's drain request, which comes before it stops this process. */
  drain(request: Request): Promise<Response> {
    return answerDrain(request, {
      token: this.#env.DRAIN_TOKEN,
      shutdown: this.#shutdown,
      open: () => this.#cap.openRequests,
      now: this.#deps.now,
    })
  }

  #writeHistorySoon(): void {
    const writing = this.#history.writeSoon()
    if (writing !== undefined) this.#deps.keepAlive(writing)
  }

  #addHeaders(headers: Headers, request: Request, requestId: string, endpoint?: Endpoint): void {
    headers.set('x-request-id', requestId)
    // The client libraries of this format read this header.
    if (endpoint?.errors === 'anthropic') headers.set('request-id', requestId)
    const crossOrigin = crossOriginHeaders({
      audience: endpoint?.anyOrigin === true ? 'public' : (endpoint?.audience ?? 'admin'),
      origin: request.headers.get('origin'),
      allowed: this.#settings.known?.config.service.cors_origins ?? [],
      preflight: request.method === 'OPTIONS',
    })
    for (const [name, value] of Object.entries(crossOrigin)) headers.set(name, value)
  }

  get #parts(): StorageParts {
    return (this.#opened ??= openStorageParts(this.#env, {
      ...this.#deps,
      link: this.#link,
      log: this.#log,
    }))
  }

  /** Returns the error with which to answer a failed request. */
  async #judge(error: unknown, { key }: RequestState): Promise<unknown> {
    if (key === undefined) return error
    return this.#gate.judge(key, error, this.#parts)
  }

  async #openContext(
    request: Request,
    requestId: string,
    execution: ExecutionContext,
    state: RequestState,
  ): Promise<Context> {
    const settings = await this.#settings.current()
    const parts = this.#parts
    // Requests of operators and monitors are never refused, especially not under overload.
    if (state.endpoint?.audience === 'keyed') {
      state.key = await this.#gate.admit(request, parts)
      state.permit = this.#cap.enter(state.key.customerId)
    }
    const { key, permit } = state
    return this.#contexts.build(settings, parts, {
      requestId,
      client: request.signal,
      key,
      permit,
      waitUntil: (work) => {
        execution.waitUntil(work)
        permit?.keepDuring(work)
      },
    })
  }
}

function print(text: string): void {
  console.log(text)
}

/** The state of one request while it is handled. */
interface RequestState {
  endpoint: Endpoint | undefined
  error: unknown
  /** The key that the gate admitted, where the endpoint needs one. */
  key: PresentedKey | undefined
  /** The request's permit, where requests of its endpoint are limited. */
  permit: Permit | undefined
}
