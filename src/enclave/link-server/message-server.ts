import type { RawData, WebSocket } from 'ws'
import {
  MAX_OPEN_CALLS,
  MESSAGE_KINDS,
  readFrame,
  writeFrames,
  type AnswerHead,
  type LinkMessage,
} from '../../protocol/link-messages.ts'
import { BriefMap } from '../../protocol/brief-map.ts'
import type { MessageCaller } from './message-caller.ts'

/** A call that came as a message; its head is not checked yet. */
export interface MessageCall {
  readonly head: string
  readonly body: Uint8Array
}

export type MessageListener = (call: MessageCall, caller: MessageCaller) => void

/** A worker that makes calls but reads no answers is disconnected once more than this is unsent, bytes. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024

/** Serves a connection over which a worker makes calls as messages. */
export function serveMessages(socket: WebSocket, listener: MessageListener): void {
  const peer = new Peer(socket)
  // Errors need no handling here: `close` follows each of them.
  socket.on('error', () => {})
  socket.on('close', () => peer.end())
  socket.on('message', (data: RawData, isBinary) => {
    try {
      if (!isBinary || !(data instanceof Buffer)) throw new TypeError('a frame of text')
      peer.take(readFrame(data), listener)
    } catch {
      socket.terminate()
    }
  })
}

/** One worker's connection, and its unanswered calls. */
class Peer {
  readonly #socket: WebSocket
  readonly #calls = new BriefMap<number, Caller>()
  #replies: LinkMessage[] = []

  constructor(socket: WebSocket) {
    this.#socket = socket
  }

  /** @throws Error for a violation of the protocol */
  take(messages: readonly LinkMessage[], listener: MessageListener): void {
    for (const { kind, id, head, body } of messages) {
      if (kind === MESSAGE_KINDS.cancel) this.#leave(id)
      else if (kind === MESSAGE_KINDS.call) this.#begin(id, { head, body }, listener)
      else throw new Error('a message that only a worker gets')
    }
  }

  /** The connection is closed, so nobody awaits any of its answers. */
  end(): void {
    for (const [id] of this.#calls) this.#leave(id)
  }

  #begin(id: number, call: MessageCall, listener: MessageListener): void {
    if (this.#calls.has(id)) throw new Error('a call with an id that is in use')
    if (this.#calls.size >= MAX_OPEN_CALLS) throw new Error('too many calls')
    const caller = new Caller((message) => this.#reply({ id, ...message }))
    this.#calls.add(id, caller)
    listener(call, caller)
  }

  #leave(id: number): void {
    this.#calls.take(id)?.leave()
  }

  /** Collects the answers of one turn of the event loop and sends them together. */
  #reply(message: LinkMessage): void {
    if (this.#calls.take(message.id) === undefined) return
    if (this.#replies.push(message) === 1) setImmediate(() => this.#send())
  }

  #send(): void {
    const frames = writeFrames(this.#replies)
    this.#replies = []
    for (const frame of frames) this.#socket.send(frame)
    if (this.#socket.bufferedAmount > MAX_UNREAD_BYTES) this.#socket.terminate()
  }
}

type Reply = Omit<LinkMessage, 'id'>

class Caller implements MessageCaller {
  readonly #reply: (reply: Reply) => void
  #hasDisconnected = false
  #listener: (() => void) | undefined

  constructor(reply: (reply: Reply) => void) {
    this.#reply = reply
  }

  get hasDisconnected(): boolean {
    return this.#hasDisconnected
  }

  onceDisconnected(listener: () => void): void {
    this.#listener = listener
    if (this.#hasDisconnected) listener()
  }

  leave(): void {
    this.#hasDisconnected = true
    this.#listener?.()
  }

  answer(head: AnswerHead, body: Uint8Array): void {
    this.#tell({ kind: MESSAGE_KINDS.answer, head: JSON.stringify(head), body })
  }

  breakOff(head: AnswerHead, part: Uint8Array): void {
    this.#tell({ kind: MESSAGE_KINDS.broken, head: JSON.stringify(head), body: part })
  }

  wait(id: string): void {
    const head = JSON.stringify({ waiting: id })
    this.#tell({ kind: MESSAGE_KINDS.waiting, head, body: new Uint8Array(0) })
  }

  /** Once the caller has disconnected, another call may use its id. */
  #tell(reply: Reply): void {
    if (!this.#hasDisconnected) this.#reply(reply)
  }
}
