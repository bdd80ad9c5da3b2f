import { ApiError } from '../http/errors.ts'
import type { Handler } from '../context.ts'
import { html } from '../http/reply.ts'

const POLICY = /http-equiv="Content-Security-Policy" content="([^"]+)"/

/**
 * GET /console and /console/try: the page that this host brings along (docs/console.md). Its own policy is sent as a header
 * too, where it also keeps the page out of frames.
 */
export const showConsole: Handler = async (_request, { consolePage }) => {
  const policy = POLICY.exec(consolePage ?? '')?.[1]
  if (consolePage === undefined || policy === undefined) {
    throw new ApiError('not_found', 'This host has no console.')
  }
  return html(consolePage, { 'content-security-policy': `${policy}; frame-ancestors 'none'` })
}
