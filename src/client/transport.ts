import type { Bytes } from '../protocol/bytes.ts'
import type { Proof } from './proof.ts'

/** A request with a complete body. */
export interface OutgoingRequest {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly body: Bytes | undefined
  readonly signal: AbortSignal
}

/** The bytes of an answer, in any stream class of the runtime or its libraries. */
export interface AnswerBody {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
    cancel(reason?: unknown): Promise<void>
  }
}

/** Converts a body to a stream of the runtime's own class, without delay. */
export function streamOf(body: AnswerBody): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await reader.read()
      if (done) controller.close()
      else if (value !== undefined) controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

/** An incoming answer. */
export interface IncomingAnswer {
  readonly status: number
  readonly statusText: string
  readonly headers: Headers
  readonly body: AnswerBody | null
}

/** Sends requests to the router, and to no other host. */
export interface Transport {
  /**
   * @throws AttestationRefused when the evidence is refused; no byte of the request has been sent then
   * @throws AttestationUnavailable when there is no evidence; no byte of the request has been sent then
   * @throws TypeError when the connection fails, as with `fetch`
   * @throws DOMException when the request is aborted, as with `fetch`
   */
  send(request: OutgoingRequest): Promise<IncomingAnswer>
  /** The valid proofs. */
  proofs(): readonly Proof[]
  /** Drops every proof, so that the next request fetches fresh evidence. Running answers continue. */
  refresh(): void
  /** Closes the connections once running answers have ended. */
  close(): Promise<void>
}
