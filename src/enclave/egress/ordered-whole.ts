import type { WholeOrder, WholeRecord } from '../../protocol/whole-order.ts'

/** A call whose answer a worker has ordered whole. */
export interface OrderedCall {
  readonly order: WholeOrder
  readonly provider: string
  /** Of the evidence that the connection was pinned to; null without attestation. */
  readonly evidenceSha256: string | null
  /** The body that the provider was sent. */
  readonly request: Uint8Array
}

/** An answer as the client is to receive it. */
export interface WrittenWhole {
  readonly body: Buffer
  readonly record: WholeRecord
}

/** Who waits for an answer to be written. */
export interface AwaitsWhole {
  /** Whether nobody waits any more. */
  hasLeft(): boolean
  /** Gets the answer; undefined where the worker is to read the provider's bytes itself. */
  tell(written: WrittenWhole | undefined): void
}

/** Writes the client's answer from a small and whole one of a provider. */
export type WriteWhole = (call: OrderedCall, answer: Buffer, awaits: AwaitsWhole) => void
