import type { LinkReply } from '../link-server/reply.ts'
import type { Question, ToCarrier } from './messages.ts'

/** Questions to the main thread that wait for their answers. */
export class Questions {
  readonly #send: (id: number, question: Question) => void
  readonly #waiting = new Map<number, (reply: LinkReply | undefined) => void>()
  #last = 0

  constructor(send: (id: number, question: Question) => void) {
    this.#send = send
  }

  ask(question: Question): Promise<LinkReply | undefined> {
    const { promise, resolve } = Promise.withResolvers<LinkReply | undefined>()
    this.#last += 1
    this.#waiting.set(this.#last, resolve)
    this.#send(this.#last, question)
    return promise
  }

  answered({ id, reply }: ToCarrier): void {
    this.#waiting.get(id)?.(reply)
    this.#waiting.delete(id)
  }
}
