import type { WholeOrder } from '../../protocol/whole-order.ts'
import type { OwnSignal } from '../calls/own-signal.ts'
import type { LinkAnswer } from './link-answer.ts'

/** A call of the daemon: that of `fetch`, but for its signal, and with what only a message has. */
export type LinkInit = Omit<RequestInit, 'signal'> & {
  readonly signal?: OwnSignal
  /** Orders the client's answer, where the call is a message. */
  readonly whole?: WholeOrder | undefined
  /** Whether a stream that is called for comes in another way than in the answer to the call, which is small then. */
  readonly hasSmallAnswer?: boolean
}

/** What makes calls of the daemon. */
export interface LinkCalls {
  fetch(url: string, init?: LinkInit): Promise<LinkAnswer>
}

/** What the worker needs of a binding: the pinned mTLS service, or a function that does the same. */
export interface LinkBinding {
  fetch(url: string, init?: RequestInit): Promise<Response>
}

/** The origin for bindings that determine the destination themselves; the host name never leaves the worker. */
export const BOUND_ORIGIN = 'https://enclave'

/** Calls over HTTP. */
export class HttpCalls implements LinkCalls {
  readonly #binding: LinkBinding

  constructor(binding: LinkBinding) {
    this.#binding = binding
  }

  fetch(
    url: string,
    { signal, whole: _whole, hasSmallAnswer: _isSmall, ...init }: LinkInit = {},
  ): Promise<Response> {
    return this.#binding.fetch(
      url,
      signal === undefined ? init : { ...init, signal: signal.ofPlatform() },
    )
  }
}
