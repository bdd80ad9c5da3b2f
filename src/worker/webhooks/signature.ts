import { fromBase64, toBase64, utf8 } from '../../protocol/bytes.ts'

/**
 * The headers of a signed message (Standard Webhooks 1.0.0, symmetric signatures).
 * @param secret `whsec_` and base64, or base64 alone
 * @param now ms
 * @throws TypeError when the secret is not base64
 */
export async function signedHeaders(
  message: { readonly id: string; readonly body: string },
  secret: string,
  now: number,
): Promise<Readonly<Record<string, string>>> {
  const timestamp = String(Math.floor(now / 1000))
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const bytes = fromBase64(secret.replace(/^whsec_/, ''))
  const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['sign'])
  const signed = utf8(`${message.id}.${timestamp}.${message.body}`)
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', key, signed))
  return {
    'webhook-id': message.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${toBase64(signature)}`,
  }
}
