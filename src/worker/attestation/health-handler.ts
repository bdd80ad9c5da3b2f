import type { Handler } from '../context.ts'
import { json } from '../http/reply.ts'

/** GET /healthz: ready to serve, which takes a daemon that signs and a storage that answers. */
export const getHealth: Handler = async (_request, { link, storage }) => {
  await Promise.all([link.state(), storage.directory().batch([{ sql: 'SELECT 1', params: [] }])])
  return json({ status: 'ok' })
}
