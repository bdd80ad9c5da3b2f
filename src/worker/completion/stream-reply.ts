import { releaseAdmission } from '../admission.ts'
import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { streamAttemptDeps } from '../context.ts'
import { ApiError, clientDisconnected } from '../http/errors.ts'
import { eventStream } from '../http/reply.ts'
import { errorFields } from '../http/error-fields.ts'
import { toApiError } from '../http/to-api-error.ts'
import { droppedMembersHeader } from '../provider/dropped-members.ts'
import type { Route } from '../provider/route.ts'
import { attemptRoutes } from '../routing/attempt.ts'
import type { CarriedCall } from '../routing/carried-calls.ts'
import { Budget } from '../routing/budget.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import { CHAT_FAILURE_MAPPING } from '../routing/failure-mapping.ts'
import { NOTHING_WRITTEN } from '../stream/encoder.ts'
import { answerHead } from './answer-head.ts'
import { chatExchange, type AdmittedChat } from './admitted.ts'
import { ClientStream } from './client-stream.ts'
import { settleUnreceipted } from './settle-unreceipted.ts'
import { endStream } from './stream-end.ts'
import type { AcceptedAttempt, ClientEnd, CommittedStream, PumpedEnd } from './open-stream.ts'
import { streamAttempt } from './stream-attempt.ts'

/**
 * Answers a request with a stream: attempts up to the commit point -> relay -> settle -> last event.
 * The response starts at the commit point or after `stream_headers_after_ms`, whichever is first; until then a
 * failure is a real status, afterwards an event.
 */
export async function answerStream(admitted: AdmittedChat): Promise<Response> {
  const { context, headers } = admitted
  const reply = new StreamReply(admitted)
  const work = reply.run()
  context.waitUntil(work.catch(() => {}))
  await Promise.race([work, reply.begun])
  const dropped = droppedMembersHeader(admitted, reply.routes)
  return eventStream(reply.readable, { ...headers, ...dropped })
}

const openingTimedOut = () =>
  new ApiError('routes_unavailable', 'No route began to answer in time.')

const streamTimedOut = () =>
  new ApiError('upstream_timeout', 'The answer took longer than a stream may last.')

/**
 * After the stream's time limit, a client that still reads gets an error event; after this time, the connection of one that
 * does not read is closed.
 */
const FINAL_EVENT_TIMEOUT_MS = 2_000

class StreamReply {
  /** Resolves when the headers may be sent. */
  readonly begun: Promise<void>
  readonly #begin: () => void
  readonly #client: ClientStream
  /** The client's end, where the runtime moves the bytes. */
  #pumped: PumpedEnd | undefined
  readonly #admitted: AdmittedChat
  readonly #budget: Budget
  readonly #gone = new AbortController()
  /** Set after the time limit of the stream has passed. */
  #overdue: ReturnType<typeof setInterval> | undefined
  /** The attempt whose provider has accepted the prompt and has not failed since. */
  #accepted: AcceptedAttempt | undefined
  /** The attempt whose answer is relayed. */
  #served: PlannedAttempt | undefined
  #carried: CarriedCall | undefined
  /** Closes the connection of a client that does not read, starting `FINAL_EVENT_TIMEOUT_MS` after the budget's end. */
  readonly #watchClient = () => {
    this.#overdue = setInterval(() => {
      this.#client.abandonAfter(FINAL_EVENT_TIMEOUT_MS)
      this.#pumped?.abandon()
    }, FINAL_EVENT_TIMEOUT_MS)
  }

  readonly #forgetBudget: () => void

  constructor(admitted: AdmittedChat) {
    const { context, clientSignal } = admitted
    this.#admitted = admitted
    this.#budget = new Budget(context.now, context.after, context.shutdown)
    const { keep_alive_ms } = context.config.service.timeouts
    const recorder = admitted.idempotent?.recorder()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.begun = promise
    this.#begin = resolve
    this.#client = new ClientStream(
      keep_alive_ms,
      context.now,
      () => this.#clientDisconnected(),
      recorder,
    )
    const leave = () => this.#client.leave()
    if (clientSignal.aborted) leave()
    else clientSignal.addEventListener('abort', leave, { once: true })
    this.#forgetBudget = this.#budget.signal.onAbort(this.#watchClient)
  }

  /** The route that serves; before it is known, all planned routes. */
  get routes(): readonly Route[] {
    const attempts = this.#served ? [this.#served] : this.#admitted.plan.attempts
    return attempts.map(({ route }) => route)
  }

  get readable(): ReadableStream<Uint8Array> {
    return (this.#pumped ?? this.#client).readable
  }

  async run(): Promise<void> {
    const { timeouts } = this.#admitted.context.config.service
    const headers = setTimeout(() => this.#startClient(), timeouts.stream_headers_after_ms)
    try {
      this.#budget.limit(timeouts.stream_open_ms, openingTimedOut)
      this.#admitted.daemonAlive?.catch((error: unknown) => this.#budget.abort(error))
      const deps = streamAttemptDeps(this.#admitted.context, this.#budget, CHAT_FAILURE_MAPPING)
      const attempt = streamAttempt(this.#admitted, this.#budget, (accepted) => {
        this.#accepted = accepted
      })
      const served = await attemptRoutes(this.#admitted.plan.attempts, attempt, deps)
      this.#carried = served.carried
      // The attempt may have waited for the daemon until after its time limit.
      this.#budget.signal.throwIfAborted()
      this.#served = served.attempt
      this.#budget.limit(timeouts.stream_ms, streamTimedOut)
      clearTimeout(headers)
      const { source } = served.value
      const client = await this.#clientFor(source)
      const relayed = await source.relayTo(client, this.#gone.signal, served.carried)
      served.carried.end()
      await endStream(this.#admitted, served.value, relayed, client)
    } catch (error) {
      await this.#fail(error)
    } finally {
      clearTimeout(headers)
      this.#carried?.end()
      this.#budget.end()
      // Otherwise a budget that is aborted after the end (dead daemon, disconnected client) would start `#watchClient`.
      this.#forgetBudget()
      if (this.#overdue !== undefined) clearInterval(this.#overdue)
    }
  }

  /** Handles an error: it becomes a status if the response has not begun, else its last event. */
  async #fail(error: unknown): Promise<void> {
    try {
      await this.#settleFailed()
    } finally {
      // The response may have begun during the settlement.
      await this.#begunClient?.finish(this.#failure(error))
    }
    if (this.#begunClient === undefined) throw error
  }

  get #begunClient(): ClientEnd | undefined {
    return this.#pumped ?? (this.#client.started ? this.#client : undefined)
  }

  /**
   * Settles a failed request. If nothing was delivered it costs nothing, unless the client disconnected while a provider was
   * generating. If it failed after that, what was produced is billed. An earlier settlement is not changed.
   */
  async #settleFailed(): Promise<void> {
    const { context, admission } = this.#admitted
    const isBilled = this.#gone.signal.aborted || this.#served !== undefined
    if (!isBilled || this.#accepted === undefined) return releaseAdmission(context, admission)
    const { attempt, produced } = this.#accepted
    const exchange = chatExchange(this.#admitted, attempt, await produced())
    await settleUnreceipted(this.#admitted, exchange)
  }

  #failure(error: unknown): Bytes {
    const { context, format, plan } = this.#admitted
    const { log, requestId } = context
    log('stream_failed', { request_id: requestId, ...errorFields(error) })
    const last = format.lastEvents(answerHead(this.#admitted, plan.requestedRoute))
    // Only the attempt knew how much was delivered, so no tail is given.
    const tail = this.#served === undefined ? NOTHING_WRITTEN : undefined
    return utf8(last.fail(tail, toApiError(error)))
  }

  #startClient(): void {
    this.#client.start()
    this.#begin()
  }

  /**
   * The client's end for this stream, which may begin now. If nothing was sent yet and nothing is recorded, the runtime
   * moves what the daemon writes.
   */
  async #clientFor({ pumped }: CommittedStream): Promise<ClientStream | PumpedEnd> {
    if (pumped === undefined || this.#client.started || this.#admitted.idempotent !== undefined) {
      this.#startClient()
      return this.#client
    }
    this.#pumped = await pumped(() => this.#client.leave())
    this.#begin()
    return this.#pumped
  }

  #clientDisconnected(): void {
    this.#gone.abort()
    this.#budget.abort(clientDisconnected())
  }
}
