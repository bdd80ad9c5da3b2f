import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocketServer, type WebSocket } from 'ws'
import {
  callHeadSchema,
  MESSAGE_KINDS,
  readFrame,
  writeFrames,
  type AnswerHead,
  type LinkMessage,
} from '../../src/protocol/link-messages.ts'
import { LINK_PATHS } from '../../src/protocol/link.ts'
import type { LinkFault } from './link-proxy.ts'

/** A call that is passed on to the daemon, and its answer. */
export interface PassedCall {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export interface PassedAnswer extends AnswerHead {
  readonly body: Uint8Array
}

export interface MessageProxy {
  /** What becomes of calls of that path. */
  readonly faultOf: (path: string) => LinkFault | undefined
  readonly pass: (call: PassedCall) => Promise<PassedAnswer>
  /** How long a slow daemon takes, ms. */
  readonly slowMs: number
}

/** Takes a worker's calls as messages, and answers them as the daemon does, or fails. Returns how many connections there are. */
export function proxyMessages(server: Server, proxy: MessageProxy): () => number {
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const fault = proxy.faultOf(LINK_PATHS.messages)
    if (fault === 'silent') return
    if (fault === undefined || fault === 'slow') {
      sockets.handleUpgrade(request, socket, head, (accepted) => serve(accepted, proxy))
    } else socket.destroy()
  })
  return () => sockets.clients.size
}

function serve(socket: WebSocket, proxy: MessageProxy): void {
  socket.on('error', () => {})
  socket.on('message', (frame: Buffer) => {
    const calls = readFrame(frame).filter(({ kind }) => kind === MESSAGE_KINDS.call)
    for (const call of calls) {
      void answer(call, socket, proxy).catch(() => socket.terminate())
    }
  })
}

async function answer(call: LinkMessage, socket: WebSocket, proxy: MessageProxy): Promise<void> {
  const { path, headers } = callHeadSchema.parse(JSON.parse(call.head))
  const tell: Tell = ({ body, ...head }, kind = 'answer') => {
    const message = { kind: MESSAGE_KINDS[kind], id: call.id, head: JSON.stringify(head), body }
    for (const frame of writeFrames([message])) socket.send(frame)
  }
  const fault = proxy.faultOf(path)
  if (fault !== undefined && fault !== 'slow') return FAULTS[fault](tell, socket)
  if (fault === 'slow') await delay(proxy.slowMs)
  tell(await proxy.pass({ path, headers, body: call.body }))
}

type Tell = (answer: PassedAnswer, kind?: 'answer' | 'broken') => void

const said = (status: number, text: string): PassedAnswer => ({
  status,
  headers: {},
  body: Buffer.from(text),
})

const FAULTS: Readonly<
  Record<Exclude<LinkFault, 'slow'>, (tell: Tell, socket: WebSocket) => void>
> = {
  silent: () => {},
  reset: (_tell, socket) => socket.terminate(),
  garbage: (tell) => tell(said(200, '\u0000\u00ff not JSON')),
  'wrong form': (tell) => tell(said(200, '{"generation": "first", "receipts": []}')),
  'status 500': (tell) => tell(said(500, '{"error": {"code": "x", "message": "x"}}')),
  cut: (tell) => tell(said(200, '{"generation": 1, '), 'broken'),
}
