import { receiptEndpointOf } from '../protocol/receipt.ts'
import { wantsReceipt } from '../protocol/wants-receipt.ts'
import { digestAnswer } from './answer-digest.ts'
import { ClientError, ReceiptRefused } from './errors.ts'
import { addressOf, type BundleState, type ClientOptions, type Settings } from './options.ts'
import type { Proof } from './proof.ts'
import { ReceiptVerifier } from './receipts.ts'
import type { ReceiptOutcome } from './receipt-outcome.ts'
import { streamOf, type IncomingAnswer, type OutgoingRequest, type Transport } from './transport.ts'
import { ObservedExchange } from './observed-exchange.ts'

/**
 * A client of one router that verifies the router before it sends a request, and the receipts of answers afterwards.
 */
export interface Client {
  /** For any SDK that accepts a `fetch`. Only for addresses of the router. */
  readonly fetch: typeof fetch
  readonly receipts: Receipts
  /**
   * Verifies the router now, with fresh evidence; running requests continue.
   * @throws AttestationRefused when the evidence is refused
   * @throws AttestationUnavailable when the router returns no evidence
   */
  verify(): Promise<readonly Proof[]>
  /** The valid proofs, one for each host. */
  proofs(): readonly Proof[]
  /** Waits for running answers and for receipts that are being verified, and closes the connections. */
  close(): Promise<void>
}

export interface Receipts {
  /**
   * The verified receipt of an answer from `fetch`; the answer must have been read to its end. Resolves with undefined
   * for an answer that cannot have a receipt, and for one without a receipt where the request asked for none.
   */
  of(response: Response): Promise<ReceiptOutcome | undefined>
  /** Waits for all receipts that are being verified. */
  settled(): Promise<void>
}

/** Whether SDKs take this status for an answer, like `Response.ok`. */
const isSuccess = (status: number) => status >= 200 && status < 300

/** Statuses whose answers must not have a body, as `Response` requires. */
const NO_BODY = new Set([101, 204, 205, 304])

export function clientOver(
  settings: Settings,
  { transport, state }: { readonly transport: Transport; readonly state: BundleState },
  options: ClientOptions,
): Client {
  const verifier = new ReceiptVerifier(settings, transport, state)
  const watch = new AnswerWatch(verifier, options)
  const send = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = await readRequest(input, init, settings)
    const answer = await transport.send(request)
    return watch.pass(request, answer)
  }
  return {
    fetch: send,
    receipts: watch,
    verify: async () => {
      transport.refresh()
      const url = addressOf(settings, '/.well-known/jwks.json')
      const signal = AbortSignal.timeout(VERIFY_TIMEOUT_MS)
      const none = { headers: new Headers(), body: undefined, signal }
      const { body } = await transport.send({ url, method: 'GET', ...none })
      await body?.getReader().cancel()
      return transport.proofs()
    },
    proofs: () => transport.proofs(),
    close: async () => {
      await watch.settled()
      await transport.close()
    },
  }
}

const VERIFY_TIMEOUT_MS = 90_000

/**
 * Normalises the arguments of `fetch`.
 * @throws ClientError when the address is not the router's
 */
async function readRequest(
  input: RequestInfo | URL,
  init: RequestInit | undefined,
  { base }: Settings,
): Promise<OutgoingRequest> {
  const request = new Request(input, init)
  const url = new URL(request.url)
  if (url.origin !== base.origin) {
    throw new ClientError('foreign_address', `${url.origin} is not the router at ${base.origin}`)
  }
  const { method, signal } = request
  const headers = new Headers(request.headers)
  const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer())
  return { url, method, headers, body, signal }
}

/** Observes answers to their end and verifies their receipts. */
class AnswerWatch implements Receipts {
  readonly #verifier: ReceiptVerifier
  readonly #options: ClientOptions
  readonly #answers = new WeakMap<Response, () => Promise<ReceiptOutcome | undefined>>()
  readonly #open = new Set<Promise<unknown>>()

  constructor(verifier: ReceiptVerifier, options: ClientOptions) {
    this.#verifier = verifier
    this.#options = options
  }

  of(response: Response): Promise<ReceiptOutcome | undefined> {
    return this.#answers.get(response)?.() ?? Promise.resolve(undefined)
  }

  async settled(): Promise<void> {
    while (this.#open.size > 0) {
      // Repeats, because further verifications may have started in the meantime.
      await Promise.all(this.#open)
    }
  }

  /** The same answer; where it can have a receipt, its bytes are observed on their way. */
  pass(request: OutgoingRequest, answer: IncomingAnswer): Response {
    const { method, url } = request
    const issues = receiptEndpointOf(url.pathname) !== undefined
    // Any status of success: a party that relays an encrypted answer can change its status, and must not evade the
    // receipt by that.
    const has = method === 'POST' && isSuccess(answer.status) && issues
    if (!has || answer.body === null) {
      return asResponse({ ...answer, body: answer.body && streamOf(answer.body) }, url)
    }
    const exchange = new ObservedExchange(request, digestAnswer(answer.headers), this.#verifier)
    const { onReceipt, requireReceipt } = this.#options
    const verified = () => this.#track(exchange.outcome())
    const expected = wantsReceipt(request.headers)
    const reported = async (): Promise<ReceiptOutcome | undefined> => {
      const outcome = await verified()
      return expected || outcome.id !== undefined ? outcome : undefined
    }
    const body = exchange.tap(answer.body, {
      known: () => {
        if (onReceipt === undefined) return
        void this.#track(reported().then((outcome) => outcome && onReceipt(outcome)))
      },
      ended: async () => {
        if (requireReceipt === true) requireVerified(await verified())
      },
    })
    const passed = asResponse({ ...answer, body }, url)
    this.#answers.set(passed, () =>
      exchange.known.then((known) => (known ? reported() : undefined)),
    )
    return passed
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const entry = work.catch(() => undefined).finally(() => this.#open.delete(entry))
    this.#open.add(entry)
    return work
  }
}

function requireVerified({ failed, ok, path }: ReceiptOutcome): void {
  if (ok) return
  throw new ReceiptRefused(failed, `the receipt of ${path} does not hold: ${failed.join(', ')}`)
}

/** An answer of the runtime's own class, as SDKs expect it. */
function asResponse(
  {
    body,
    headers,
    status,
    statusText,
  }: Omit<IncomingAnswer, 'body'> & { body: ReadableStream | null },
  url: URL,
): Response {
  const made = new Response(NO_BODY.has(status) ? null : body, { status, statusText, headers })
  Object.defineProperty(made, 'url', { value: url.href })
  return made
}
