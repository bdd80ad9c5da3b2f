import type { AnswerHead } from '../../protocol/link-messages.ts'

/**
 * The caller of a call that came as a message. Only the first answer is sent, and none once the caller has disconnected
 * or cancelled the call.
 */
export interface MessageCaller {
  readonly hasDisconnected: boolean
  /** Sets the function that is called when nobody awaits the answer any more. */
  onceDisconnected(listener: () => void): void
  answer(head: AnswerHead, body: Uint8Array): void
  /** Reports that the answer broke off after this part of its body. */
  breakOff(head: AnswerHead, part: Uint8Array): void
  /** Reports that the answer waits under this id. */
  wait(id: string): void
}
