import { readFrame, writeFrames, type LinkMessage } from '../../../src/protocol/link-messages.ts'
import { microtasksEnd } from '../../../src/worker/batching/microtasks.ts'

type Events = 'message' | 'close' | 'error'

/** The other end of a connection for messages. */
export class FakeSocket {
  binaryType = 'blob'
  accepted = false
  closed = false
  fails = false
  readonly frames: LinkMessage[][] = []
  readonly #listeners = new Map<Events, (message: { data: unknown }) => void>()

  accept() {
    this.accepted = true
  }

  send(frame: Uint8Array) {
    if (this.fails) throw new Error('cannot send')
    this.frames.push(readFrame(frame))
  }

  close() {
    this.closed = true
  }

  addEventListener(event: Events, listener: (message: { data: unknown }) => void) {
    this.#listeners.set(event, listener)
  }

  tell(event: Events, data?: unknown) {
    this.#listeners.get(event)?.({ data })
  }

  reply(...messages: LinkMessage[]) {
    for (const frame of writeFrames(messages)) this.tell('message', frame.buffer)
  }

  get sent(): LinkMessage[] {
    return this.frames.flat()
  }
}

/** Resolves when everything that is ready has run. */
export async function settled() {
  for (let turn = 0; turn < 8; turn += 1) {
    await microtasksEnd()
  }
}
