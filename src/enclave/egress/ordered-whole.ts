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

/** Gets an answer once it is written; undefined where the worker is to read the provider's bytes itself. */
export type TellWhole = (written: WrittenWhole | undefined) => void

/** Writes the client's answer from a small and whole one of a provider. */
export type WriteWhole = (call: OrderedCall, answer: Buffer, tell: TellWhole) => void
