import { ApiError } from '../http/errors.ts'
import { AttemptFailure, type Failure } from '../provider/failure.ts'
import { toApiError } from '../http/to-api-error.ts'
import type { CarriedCall, LostThread } from '../routing/carried-calls.ts'
import type { PlannedAttempt } from '../routing/plan.ts'
import type { Bytes } from '../../protocol/bytes.ts'
import type { Produced } from '../stream/billed-usage.ts'
import type { StreamedAnswer } from '../stream/streamed-answer.ts'

/** The client's end of a stream. */
export interface ClientEnd {
  /** Whether the bytes pass through this program, which then hashes and records them; otherwise the runtime moves them. */
  readonly seesBytes: boolean
  /** Sends complete events; resolves once the client's connection has taken them. */
  send(events: Uint8Array): Promise<void>
  /**
   * Sends `head` and then all of `body`: complete events that need no change. Resolves once they are taken.
   * @throws unknown when either side fails
   */
  take(head: Uint8Array, body: ReadableStream<Uint8Array>): Promise<void>
  /**
   * Ends the part that a receipt covers.
   * @returns its SHA-256 in hex; only where this end sees the bytes
   */
  seal(): Promise<string>
  /** Sends the last bytes and ends the stream. Failures are ignored. */
  finish(last: Uint8Array): Promise<void>
}

/** A client's end to which the runtime moves the bytes. */
export interface PumpedEnd extends ClientEnd {
  readonly readable: ReadableStream<Uint8Array>
  /** Closes the connection of a client that does not read. */
  abandon(): void
}

/** How a committed stream ended. */
export type StreamEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'client_gone' }
  /** `failure`: the route's failure; null where the router itself ended the stream. */
  | { readonly kind: 'cut'; readonly failure: Failure | null; readonly error: ApiError }

/** A stream that has ended, with what settles it. */
export interface RelayedStream {
  readonly end: StreamEnd
  readonly answer: StreamedAnswer
  /** SHA-256 of the provider's bytes in hex. To be called once, for a complete answer. */
  readonly providerDigest: () => Promise<string>
  /** SHA-256 in hex of what was sent, for a client's end that does not see the bytes. */
  readonly clientDigest: string | undefined
  /** The last events for a failed answer, in place of those of a complete one. */
  readonly fail: (error: ApiError) => Bytes
}

/** A provider's stream that has reached the commit point: its first delta with content, or its finish. */
export interface CommittedStream {
  /**
   * Opens a client's end to which the runtime moves the bytes unchanged, because the daemon wrote them. Undefined where this
   * program writes them.
   */
  readonly pumped?: (onDisconnect: () => void) => Promise<PumpedEnd>
  /**
   * Relays the stream to its end, with back-pressure: a slow client slows the provider down. An answer is complete if and
   * only if it has a finish reason.
   * @param carried the call whose answer is relayed
   */
  relayTo(
    client: ClientEnd,
    clientDisconnected: AbortSignal,
    carried: CarriedCall,
  ): Promise<RelayedStream>
}

/** The attempt whose answer is relayed. */
export interface OpenStream {
  readonly attempt: PlannedAttempt
  readonly source: CommittedStream
  readonly requestDigest: string
  readonly evidenceSha256: string | null
  /** Whether the answer arrived compressed; its digest then covers the decompressed bytes. */
  readonly decoded: boolean
}

/** An attempt whose provider has accepted the prompt, with a function for what it has produced so far. */
export interface AcceptedAttempt {
  readonly attempt: PlannedAttempt
  readonly produced: () => Promise<Produced>
}

/** The end of a committed stream whose daemon thread was lost. */
export function cutByLoss({ error, failure }: LostThread): StreamEnd {
  return { kind: 'cut', failure: failure ?? null, error: toApiError(error) }
}

/** The end of a committed stream that failed. */
export function cutBy(cause: unknown): Extract<StreamEnd, { kind: 'cut' }> {
  if (cause instanceof ApiError) return { kind: 'cut', failure: null, error: cause }
  const failure = cause instanceof AttemptFailure ? cause.failure : { kind: 'timeout' as const }
  const error =
    failure.kind === 'timeout'
      ? new ApiError('upstream_timeout', 'The provider took too long in the middle of its answer.')
      : new ApiError('bad_gateway', 'The provider broke off its answer.')
  return { kind: 'cut', failure, error }
}
