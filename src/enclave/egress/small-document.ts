import { concatBytes, type Bytes } from '../../protocol/bytes.ts'
import type { EgressRequest } from '../open-egress.ts'
import { Exchange } from './exchange.ts'
import type { ProviderChannel } from '../proofs.ts'
import type { OpenConnection } from './open-connection.ts'

/**
 * Gets a document of at most `maxBytes` from a provider.
 * @throws Error when it is larger, none came, or the signal was aborted
 */
export async function getDocument(
  { connection, pool, basePath, channel: { apiKey } }: OpenConnection<ProviderChannel>,
  { path, maxBytes, signal }: EgressRequest,
): Promise<{ status: number; body: Bytes }> {
  const parts: Uint8Array[] = []
  let size = 0
  let status = 0
  const over = Promise.withResolvers<void>()
  const exchange = new Exchange(
    (answer) => {
      status = answer.statusCode
      answer.on('data', (part) => {
        size += part.length
        if (size > maxBytes) answer.destroy()
        else parts.push(part)
      })
      answer.once('end', over.resolve)
      answer.once('close', () => over.reject(new Error('the answer is cut off or too large')))
    },
    () => pool.release(connection),
  )
  const abandon = () => exchange.abandon(new Error('the answer took too long'))
  const headers = {
    accept: 'application/json',
    'accept-encoding': 'identity',
    ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
  }
  signal.addEventListener('abort', abandon, { once: true })
  if (signal.aborted) abandon()
  connection.send({ method: 'GET', path: `${basePath}${path}`, headers, body: null }, exchange)
  try {
    await exchange.begun
    await over.promise
  } finally {
    signal.removeEventListener('abort', abandon)
  }
  return { status, body: concatBytes(...parts) }
}
