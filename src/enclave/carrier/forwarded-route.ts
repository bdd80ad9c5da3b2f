import { sendReply } from '../link-server/reply.ts'
import type { RelayRoute } from '../link/dispatch.ts'
import { MAX_TELEMETRY_BYTES } from '../link/routes.ts'
import type { Questions } from './questions.ts'

/** All other routes of the link: their state is in the main thread, so the carrier forwards the call there. */
export function createForwardedRoute(questions: Pick<Questions, 'ask'>): RelayRoute {
  return {
    method: 'any',
    path: '/v1',
    below: true,
    async relay({ body, url: { pathname, search } }, { method = 'GET' }, response) {
      const bytes = await body(MAX_TELEMETRY_BYTES)
      const target = `${pathname}${search}`
      const reply = await questions.ask({ type: 'call', method, target, body: bytes })
      if (reply === undefined) throw new Error('internal error: a call without a reply')
      sendReply(response, reply)
    },
  }
}
