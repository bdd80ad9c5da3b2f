import type { WholeAnswerSpec } from '../../protocol/whole-answer.ts'
import type { OwnSignal } from '../calls/own-signal.ts'
import type { LinkAnswer } from './link-answer.ts'

/** The init of a call to the daemon: that of `fetch`, except for the signal, plus options that only messages have. */
export type LinkInit = Omit<RequestInit, 'signal'> & {
  readonly signal?: OwnSignal
  /** Lets the daemon write the client's whole answer, where the call is a message. */
  readonly whole?: WholeAnswerSpec | undefined
  /** Whether the answer to a call for a stream is small, because the stream itself comes in another way. */
  readonly hasSmallAnswer?: boolean
}

/** Makes calls to the daemon. */
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
