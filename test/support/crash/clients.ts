import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { completionIn, type Completion } from '../answers.ts'
import { chatAs, type RouterAddress, type TestCustomer } from '../customer.ts'
import type { Dice } from './dice.ts'

/** What one client saw of one request. */
export interface Sighting {
  /** `x-request-id`; undefined when not even headers came. */
  readonly requestId: string | undefined
  readonly stream: boolean
  readonly wantsReceipt: boolean
  /**
   * `complete`: the whole answer, to its last byte. `refused`: an error with a status of its own. `cut`: an error
   * event in a stream. `lost`: the connection ended early. `left`: the client went away by itself.
   */
  readonly end: 'complete' | 'refused' | 'cut' | 'lost' | 'left'
  /** Of a complete answer: its last part, and the SHA-256 of the bytes that its receipt covers. */
  readonly completion?: Completion
  readonly digest?: string
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

/** Has so many clients send one request after another, streams and whole answers mixed. */
export function startClients(
  count: number,
  router: Pick<RouterAddress, 'baseUrl'>,
  customer: TestCustomer,
  dice: Dice,
): Clients {
  const sightings: Sighting[] = []
  const stopped = new AbortController()
  const work = async () => {
    while (!stopped.signal.aborted) {
      const sighting = await oneRequest(router, customer, dice)
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

async function oneRequest(
  router: Pick<RouterAddress, 'baseUrl'>,
  customer: TestCustomer,
  dice: Dice,
): Promise<Sighting> {
  const stream = dice.oneIn(2)
  const wantsReceipt = !dice.oneIn(8)
  const leaves = dice.oneIn(10) ? AbortSignal.timeout(dice.between(5, 250)) : undefined
  const signals = [AbortSignal.timeout(JOIN_TIMEOUT_MS), ...(leaves ? [leaves] : [])]
  // The scripted stand-in answers the first provider with streams and the second with whole bodies.
  const model = stream ? 'standin/glm-5' : 'standin-two/glm-5'
  const common = { stream, wantsReceipt }
  let requestId: string | undefined
  try {
    const headers = wantsReceipt ? {} : { 'x-service-receipt': 'false' }
    const signal = AbortSignal.any(signals)
    const body = { model, stream, max_tokens: 100 }
    const answer = await chatAs(router, customer, body, { headers, signal })
    requestId = answer.headers.get('x-request-id') ?? undefined
    const text = await answer.text()
    if (answer.status !== 200) return { ...common, requestId, end: 'refused' }
    return { ...common, requestId, ...(stream ? streamEnd(text) : wholeEnd(text)) }
  } catch {
    return { ...common, requestId, end: leaves?.aborted ? 'left' : 'lost' }
  }
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

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
