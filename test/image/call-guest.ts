import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import type { Guest } from './guest.ts'

/** One HTTPS call into the guest, whose certificate is self-signed. */
export async function callGuest(
  guest: Guest,
  method: string,
  path: string,
  token: string,
  body: object | undefined,
): Promise<{ readonly status: number | undefined; readonly json: unknown }> {
  const outgoing = request({
    host: '127.0.0.1',
    port: guest.port,
    path,
    rejectUnauthorized: false,
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  })
  outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = z
    .tuple([z.instanceof(IncomingMessage)])
    .parse(await once(outgoing, 'response'))
  return { status: response.statusCode, json: JSON.parse(await text(response)) }
}

/** A streamed answer of which the first bytes have come. */
export interface GuestStream {
  /** Everything, once it has ended. */
  rest(): Promise<string>
}

/** Asks for a chat as a stream. */
export async function openStream(guest: Guest, key: string, prompt: string): Promise<GuestStream> {
  const outgoing = request({
    host: '127.0.0.1',
    port: guest.port,
    path: '/v1/chat/completions',
    rejectUnauthorized: false,
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  })
  const messages = [{ role: 'user', content: prompt }]
  outgoing.end(JSON.stringify({ model: 'glm-5', stream: true, messages }))
  const [response] = z
    .tuple([z.instanceof(IncomingMessage)])
    .parse(await once(outgoing, 'response'))
  const whole = text(response)
  return { rest: () => whole }
}
