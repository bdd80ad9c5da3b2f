import { ApiError } from '../http/errors.ts'
import type { Handler } from '../context.ts'
import { html } from '../http/reply.ts'

const POLICY = /http-equiv="Content-Security-Policy" content="([^"]+)"/

/**
 * GET /console and /console/try: the page that comes with this host (docs/console.md). The page's content security
 * policy is also sent as a header, because only a header can forbid framing.
 */
export const showConsole: Handler = async (_request, { consolePage }) => {
  const policy = POLICY.exec(consolePage ?? '')?.[1]
  if (consolePage === undefined || policy === undefined) {
    throw new ApiError('not_found', 'This host has no console.')
  }
  return html(consolePage, { 'content-security-policy': `${policy}; frame-ancestors 'none'` })
}
