import type { Handler } from '../context.ts'
import { json } from '../http/reply.ts'

/**
 * GET /healthz: whether the router is ready to serve. That requires a daemon that signs, a storage that answers, and a
 * signing key that every instance publishes, because verifiers cache the key set.
 */
export const getHealth: Handler = async (_request, { readiness }) => {
  await readiness.confirm()
  return json({ status: 'ok' })
}
