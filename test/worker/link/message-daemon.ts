import { MESSAGE_KINDS, type LinkMessage } from '../../../src/protocol/link-messages.ts'
import type { LinkInit } from '../../../src/worker/link/link-calls.ts'
import { MessageBinding } from '../../../src/worker/link/message-binding.ts'
import { FakeSocket, settled } from '../calls/fake-socket.ts'

/** A link with messages, and a daemon at its other end that tests speak for. */

export const ORIGIN = 'https://enclave'
export const SIGN = `${ORIGIN}/v1/sign`
export const CHAT = `${ORIGIN}/v1/egress/nova/chat`
export const post = (more: LinkInit = {}): LinkInit => ({
  method: 'POST',
  body: '{}',
  ...more,
})

export const answer = (id: number, body = '', status = 200): LinkMessage => ({
  kind: MESSAGE_KINDS.answer,
  id,
  head: JSON.stringify({ status, headers: { 'x-a': 'b' } }),
  body: new TextEncoder().encode(body),
})

/** A binding whose daemon gives each upgrade a socket, and answers over HTTP with the path. */
export function set({ takesMessages = true, opens = true } = {}) {
  const clock = { now: 10_000 }
  const sockets: FakeSocket[] = []
  const overHttp: string[] = []
  const inits: (RequestInit | undefined)[] = []
  const daemon = { opens, stillHasAnswers: true, isGone: false }
  const binding = {
    fetch: async (url: string, init?: RequestInit): Promise<Response> => {
      const { pathname } = new URL(url)
      if (pathname !== '/v1/messages') {
        overHttp.push(pathname)
        inits.push(init)
        if (daemon.isGone) throw new Error('connection refused')
        if (daemon.stillHasAnswers || !pathname.startsWith('/v1/waiting/'))
          return new Response(pathname)
        return new Response('{}', { status: 404, headers: { 'x-cmr-egress-error': 'not_found' } })
      }
      if (!daemon.opens) return new Promise(() => {})
      if (!takesMessages) return new Response('not found', { status: 404 })
      const socket = new FakeSocket()
      sockets.push(socket)
      return Object.assign(new Response(null), { webSocket: socket })
    },
  }
  const kept: Promise<unknown>[] = []
  const host = { now: () => clock.now, keepAlive: (work: Promise<unknown>) => void kept.push(work) }
  const ended: number[] = []
  const messages = new MessageBinding(binding, host, (calls) => void ended.push(calls))
  /** With the connection open. */
  const open = async () => {
    await messages.fetch(SIGN, post())
    await settled()
    overHttp.length = 0
    const socket = sockets.at(-1)
    if (socket === undefined) throw new Error('no connection')
    return socket
  }
  return { messages, ended, clock, daemon, sockets, overHttp, inits, kept, open }
}

export const BROKEN = 'the connection for messages ended'
