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
