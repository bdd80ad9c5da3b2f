import type { Handler } from '../context.ts'
import { json } from '../http/reply.ts'

/**
 * GET /healthz: ready to serve, which takes a daemon that signs, a storage that answers, and a signing key that
 * every instance publishes: verifiers ask for the key set once and keep it for a while.
 */
export const getHealth: Handler = async (_request, { signingKeys, storage }) => {
  await Promise.all([
    signingKeys.rememberLive(),
    storage.directory().batch([{ sql: 'SELECT 1', params: [] }]),
  ])
  return json({ status: 'ok' })
}
