import type { AttemptResult } from './outbox.ts'
import { signedHeaders } from './signature.ts'

/** Reaches an endpoint, over a network restricted to public addresses where the runtime has one. */
export type SendWebhook = (url: string, init: RequestInit) => Promise<Response>

const RESPONSE_TIMEOUT_MS = 10_000

export interface Message {
  readonly id: string
  readonly body: string
}

export interface Target {
  readonly url: string
  readonly secret: string
}

/** Sends a message once. It never follows a redirect, reads no answer and never rejects. */
export async function sendMessage(
  send: SendWebhook,
  { url, secret }: Target,
  message: Message,
  now: number,
): Promise<AttemptResult> {
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS)
  try {
    const headers = {
      'content-type': 'application/json',
      ...(await signedHeaders(message, secret, now)),
    }
    const init = {
      method: 'POST',
      headers,
      body: message.body,
      redirect: 'manual',
      signal,
    } as const
    const answer = await send(url, init)
    await answer.body?.cancel()
    const { status } = answer
    if (status >= 300 && status < 400) return { delivered: false, word: 'redirected' }
    return { delivered: answer.ok, word: String(status) }
  } catch {
    return { delivered: false, word: signal.aborted ? 'timeout' : 'unreachable' }
  }
}
