import type { WholeAnswerSpec, WholeAnswerRecord } from '../../protocol/whole-answer.ts'

/** A call whose complete client answer a worker has asked the daemon to write. */
export interface WholeAnswerCall {
  readonly spec: WholeAnswerSpec
  readonly provider: string
  /** Digest of the evidence that the connection was pinned to; null without attestation. */
  readonly evidenceSha256: string | null
  /** The body that was sent to the provider. */
  readonly request: Uint8Array
}

/** An answer as the client is to receive it. */
export interface WrittenWholeAnswer {
  readonly body: Buffer
  readonly record: WholeAnswerRecord
}

/** The caller that waits for an answer to be written. */
export interface WholeAnswerReceiver {
  /** Whether the caller has disconnected. */
  hasDisconnected(): boolean
  /** Delivers the answer; undefined where the worker must read the provider's bytes itself. */
  tell(written: WrittenWholeAnswer | undefined): void
}

/** Writes the client's answer from a small, complete answer of a provider. */
export type WriteWholeAnswer = (
  call: WholeAnswerCall,
  answer: Buffer,
  awaits: WholeAnswerReceiver,
) => void
