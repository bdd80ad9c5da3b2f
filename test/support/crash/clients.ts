import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { completionIn, type Completion } from '../answers.ts'
import { chatAs, type RouterAddress, type TestCustomer } from '../customer.ts'
import type { Dice } from './dice.ts'

/** One request as a client sends it, the same bytes each time. */
export interface CrashRequest {
  readonly stream: boolean
  readonly wantsReceipt: boolean
  readonly idempotencyKey: string | undefined
}

/** What one client saw of one request. */
export interface Sighting extends CrashRequest {
  /** `x-request-id`; undefined when not even headers came. */
  readonly requestId: string | undefined
  /**
   * `complete`: the whole answer, to its last byte. `refused`: an error with a status of its own. `cut`: an error
   * event in a stream. `lost`: the connection ended early. `left`: the client went away by itself.
   */
  readonly end: 'complete' | 'refused' | 'cut' | 'lost' | 'left'
  /** Of a complete answer: its last part, and the SHA-256 of the bytes that its receipt covers. */
  readonly completion?: Completion
  readonly digest?: string
  /** SHA-256 of all bytes of an answer with status 200 that ended. */
  readonly wholeDigest?: string
}

/** Clients that send requests. */
export interface Clients {
  /** Everything seen so far. */
  readonly sightings: readonly Sighting[]
  /** Has each finish the request it is at, and answers everything seen. */
  stop(): Promise<readonly Sighting[]>
}

const PAUSE_AFTER_FAILURE_MS = 150
const JOIN_TIMEOUT_MS = 20_000

/**
 * Has so many clients send one request after another, streams and whole answers mixed.
 * @param newIdempotencyKey the key of each request; without it they have none
 */
export function startClients(
  count: number,
  router: Pick<RouterAddress, 'baseUrl'>,
  customer: TestCustomer,
  dice: Dice,
  newIdempotencyKey?: () => string,
): Clients {
  const sightings: Sighting[] = []
  const stopped = new AbortController()
  const work = async () => {
    while (!stopped.signal.aborted) {
      const request = {
        stream: dice.oneIn(2),
        wantsReceipt: !dice.oneIn(8),
        idempotencyKey: newIdempotencyKey?.(),
      }
      const sighting = await sendOnce(router, customer, request, dice)
      sightings.push(sighting)
      if (sighting.end !== 'complete') await delay(PAUSE_AFTER_FAILURE_MS)
    }
  }
  const all = Promise.all(Array.from({ length: count }, work))
  return {
    sightings,
    stop: async () => {
      stopped.abort()
      await all
      return sightings
    },
  }
}

/** Sends a request. */
export function send(
  router: Pick<RouterAddress, 'baseUrl'>,
  customer: TestCustomer,
  { stream, wantsReceipt, idempotencyKey }: CrashRequest,
  signal: AbortSignal = AbortSignal.timeout(JOIN_TIMEOUT_MS),
): Promise<Response> {
  // The scripted stand-in answers the first provider with streams and the second with whole bodies.
  const model = stream ? 'standin/glm-5' : 'standin-two/glm-5'
  const headers = {
    ...(wantsReceipt ? {} : { 'x-service-receipt': 'false' }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
  }
  return chatAs(router, customer, { model, stream, max_tokens: 100 }, { headers, signal })
}

async function sendOnce(
  router: Pick<RouterAddress, 'baseUrl'>,
  customer: TestCustomer,
  request: CrashRequest,
  dice: Dice,
): Promise<Sighting> {
  const leaves = dice.oneIn(10) ? AbortSignal.timeout(dice.between(5, 250)) : undefined
  const signals = [AbortSignal.timeout(JOIN_TIMEOUT_MS), ...(leaves ? [leaves] : [])]
  let requestId: string | undefined
  try {
    const answer = await send(router, customer, request, AbortSignal.any(signals))
    requestId = answer.headers.get('x-request-id') ?? undefined
    return sightingOf(request, answer, await answer.text())
  } catch {
    return { ...request, requestId, end: leaves?.aborted ? 'left' : 'lost' }
  }
}

/** What a client saw of an answer that came to an end. */
export function sightingOf(request: CrashRequest, answer: Response, text: string): Sighting {
  const requestId = answer.headers.get('x-request-id') ?? undefined
  if (answer.status !== 200) return { ...request, requestId, end: 'refused' }
  const end = request.stream ? streamEnd(text) : wholeEnd(text)
  return { ...request, requestId, ...end, wholeDigest: sha256(text) }
}

type End = Pick<Sighting, 'end' | 'completion' | 'digest'>

function wholeEnd(text: string): End {
  return { end: 'complete', completion: completionIn(text), digest: sha256(text) }
}

/** A stream's receipt covers the bytes before the event that carries `service`. */
function streamEnd(text: string): End {
  if (!text.endsWith('data: [DONE]\n\n')) {
    return { end: text.includes('data: {"error"') ? 'cut' : 'lost' }
  }
  const last = text.lastIndexOf('data: {')
  const json = text.slice(last + 'data: '.length, text.indexOf('\n\n', last))
  return { end: 'complete', completion: completionIn(json), digest: sha256(text.slice(0, last)) }
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
