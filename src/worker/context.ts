import { parseNano } from '../protocol/money.ts'
import type { After } from './batching/deadline-timer.ts'
import type { Readiness } from './batching/readiness.ts'
import type { Coalescer } from './batching/coalescer.ts'
import type { PresentedKey, Random } from './auth/api-key.ts'
import type { ChunkStream } from './chunks/chunk-stream.ts'
import type { Keyring } from './auth/keyring.ts'
import type { Log } from './http/log.ts'
import type { EnterDeps } from './limits/fair-limiter.ts'
import type { IfRefused } from './limits/request-cap.ts'
import type { SharedLimits } from './limits/shared-limits.ts'
import type { Shutdown } from './limits/shutdown.ts'
import type { Link } from './link/link.ts'
import type { InstanceWatch } from './metrics/instance-watch.ts'
import type { Traces } from './metrics/traces.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { WorkerTelemetry } from './metrics/worker-telemetry.ts'
import type { ProviderCall } from './provider/call.ts'
import type { ProbeConnect } from './provider/connect-watch.ts'
import type { ReadingTurn } from './provider/read-answer.ts'
import type { AttemptDeps } from './routing/attempt.ts'
import type { CarriedCalls } from './routing/carried-calls.ts'
import { attemptShare } from './routing/attempt-share.ts'
import { pause, type Budget } from './routing/budget.ts'
import type { KeptAnswers } from './settle/kept-answers.ts'
import type { LostAdmissions } from './settle/lost-admissions.ts'
import type { Alerts } from './settle/alerts.ts'
import type { Evidence } from './settle/evidence.ts'
import type { ReceiptHeads } from './settle/receipt-heads.ts'
import type { SettleDeps } from './settle/settle.ts'
import type { SigningKeyLog } from './settle/signing-key-log.ts'
import type { Settings } from './settings.ts'
import type { JoinWindow } from './stream/join-window.ts'
import type { YieldDuring, Storage } from './storage/database.ts'

/** Everything a handler may use, built anew for each request. Deeper steps get only the parts they need. */
export interface Context extends Settings {
  /** UUID v4; also `x-request-id`, the idempotency key of settlement and the id of the usage row. */
  readonly requestId: string
  /** The customer whose key the request has; empty on endpoints that need none. */
  readonly owner: string
  /** The key of a request to a keyed endpoint. */
  readonly presentedKey: PresentedKey | undefined
  /** Aborts when the client disconnects. */
  readonly client: AbortSignal
  readonly storage: Storage
  readonly keyring: Keyring
  readonly readiness: Readiness
  readonly signingKeys: SigningKeyLog
  readonly receiptHeads: ReceiptHeads
  readonly evidence: Evidence
  readonly keptAnswers: KeptAnswers
  readonly lostAdmissions: LostAdmissions
  readonly carriedCalls: CarriedCalls
  /** Ends requests before the process is killed. */
  readonly shutdown: Shutdown
  /** Coalesces the settlements of requests that end at about the same time. */
  readonly coalesceSettlements: Coalescer
  readonly link: Link
  readonly log: Log
  readonly metrics: Metrics
  readonly watch: InstanceWatch
  /** The operator's console, an HTML page; undefined where the host provides none. */
  readonly consolePage: string | undefined
  readonly telemetry: WorkerTelemetry
  readonly traces: Traces
  /** Sends a webhook message to one of the operator's endpoints. */
  readonly sendWebhook: (url: string, init: RequestInit) => Promise<Response>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Sets all timeouts of the request on one timer. */
  readonly after: After
  /**
   * Opens a stream whose chunks the daemon sends separately; undefined where they come in the answer to the
   * call.
   */
  readonly openChunkStream: () => ChunkStream | undefined
  /** The join window of the streams that this isolate reads and writes itself. */
  readonly joinWindow: JoinWindow
  /** A new UUID v4. */
  readonly newId: () => string
  readonly randomBytes: Random
  readonly probeConnect: ProbeConnect
  /** Limits shared by all requests of the isolate, divided fairly among customers. */
  readonly shared: SharedLimits
  /** Number of open requests of keyed endpoints, this one included. */
  readonly openRequests: () => number
  /**
   * Runs CPU-bound work when it is the customer's turn. `cost` is 1 for a small request; the work calls `moreCost` with any
   * further cost that it finds. It must not wait for the client or for a provider.
   * @throws ApiError `rate_limit_exceeded` when too many requests of the customer wait, `invalid_request_error` when the
   *   client has disconnected
   */
  readonly inTurn: <Result>(
    cost: number,
    work: (moreCost: (cost: number) => void) => Promise<Result>,
  ) => Promise<Result>
  /** Runs the settlement of a request when it is the customer's turn; never refused. */
  readonly finishInTurn: <Result>(work: () => Promise<Result>) => Promise<Result>
  /** Gives up the customer's turn during a wait that may take seconds, so that others can run. */
  readonly yieldDuring: YieldDuring
  /**
   * Reserves memory for bytes of the request's body, as a permit does (`limits/request-cap.ts`).
   * @throws ApiError when no memory is left
   */
  readonly takeMemory: (bytes: number, ifRefused?: IfRefused) => void
  /** Keeps the request's work alive after its response has ended. */
  readonly waitUntil: (work: Promise<unknown>) => void
}

/** One endpoint. `params` are the decoded path parameters of its pattern. */
export type Handler = (
  request: Request,
  context: Context,
  params: Readonly<Record<string, string>>,
) => Promise<Response>

/**
 * The part of a context that the attempt loop needs for streamed answers: every attempt has time limits of its own.
 */
export function streamAttemptDeps(
  context: Context,
  budget: Budget,
  failureMapping: AttemptDeps['failureMapping'],
): AttemptDeps {
  const { health, carriedCalls, log, requestId, owner, now, waitUntil } = context
  const maxAttempts = context.config.service.max_attempts
  return {
    health,
    log,
    requestId,
    customerId: owner,
    now,
    pause,
    timesFirstDelta: true,
    failureMapping,
    maxAttempts,
    budget,
    carriedCalls,
    waitUntil,
  }
}

/**
 * The part of a context that the attempt loop needs for answers that are not streamed: providers send headers with the
 * finished answer, so all attempts share one time budget.
 */
export function wholeAttemptDeps(
  context: Context,
  budget: Budget,
  failureMapping: AttemptDeps['failureMapping'],
): AttemptDeps {
  const { sync_attempt_ms: configured } = context.config.service.timeouts
  return {
    ...streamAttemptDeps(context, budget, failureMapping),
    timesFirstDelta: false,
    shareOf: (leftMs) => attemptShare(leftMs, configured),
  }
}

/** The part of a context that a provider call needs. */
export function callDeps({
  config,
  link,
  now,
  probeConnect,
}: Context): Pick<ProviderCall, 'link' | 'now' | 'connectMs' | 'probeConnect'> {
  return { link, now, connectMs: config.service.timeouts.connect_ms, probeConnect }
}

/** The part of a context that waiting for a place needs; the wait ends when the client disconnects. */
export function enterDeps({ now, client }: Pick<Context, 'now' | 'client'>): EnterDeps {
  return { now, pause, client }
}

/** The part of a context that reading a provider's answer needs. */
export function readingTurn({ shared, now }: Context, customerId: string): ReadingTurn {
  return { customerId, largeAnswers: shared.largeAnswers, now, pause }
}

/** The part of a context that settlement needs. */
export function settleDeps(context: Context, customerId: string): SettleDeps {
  const { link, log, now, evidence, signingKeys, receiptHeads } = context
  const { config, configurationSha256 } = context
  return {
    coalesce: (group, work) =>
      context.finishInTurn(() => context.coalesceSettlements(group, work, context.after)),
    ledger: context.storage.customer(customerId, context.yieldDuring),
    link,
    evidence,
    log,
    rememberKey: (kid) => signingKeys.remember(kid),
    rememberHead: (head, expiresAtMs) => receiptHeads.remember(head, expiresAtMs),
    configurationSha256,
    usdEur: config.service.usd_eur,
    defaultRetentionDays: config.service.receipt_retention_days,
    now,
    alerts: alertsOf(context),
  }
}

function alertsOf({ config }: Context): Alerts | undefined {
  const below = config.service.webhooks?.balance_below_eur
  return below === undefined ? undefined : { balanceBelowNano: parseNano(String(below)) }
}
