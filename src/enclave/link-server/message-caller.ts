import type { AnswerHead } from '../../protocol/link-messages.ts'

/** Who made a call as a message. Only the first answer is sent, and none once it has left. */
export interface MessageCaller {
  readonly hasLeft: boolean
  /** Sets what is called when nobody awaits the answer any more. */
  onceLeft(listener: () => void): void
  answer(head: AnswerHead, body: Uint8Array): void
  /** The answer broke off after this part of its body. */
  breakOff(head: AnswerHead, part: Uint8Array): void
  /** The answer waits under this id. */
  wait(id: string): void
}
