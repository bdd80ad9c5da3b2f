import { bringsSecret } from './auth/secret.ts'
import { ApiError } from './http/errors.ts'
import { answerUntil, errorReply } from './http/reply.ts'
import type { Shutdown } from './limits/shutdown.ts'
import { pause } from './routing/budget.ts'

export interface DrainParts {
  /** The secret that authenticates the supervisor; absent where no supervisor stops this process. */
  readonly token: string | undefined
  readonly shutdown: Shutdown
  /** Number of open requests. */
  readonly open: () => number
  /** Ms. */
  readonly now: () => number
}

/**
 * Answers the supervisor's drain request (`?after_ms=`), which comes before it stops this process. The answer ends once no
 * request is open; requests that are still open after that time are ended. Counting starts when the body of the drain
 * request ends: no further requests can arrive after that.
 */
export async function answerDrain(
  request: Request,
  { token = '', shutdown, open, now }: DrainParts,
): Promise<Response> {
  if (!(await bringsSecret(request, token))) {
    return errorReply(new ApiError('unauthorized', 'Only the supervisor begins a drain.'))
  }
  const afterMs = Number(new URL(request.url).searchParams.get('after_ms'))
  return answerUntil(async () => {
    await request.text().catch(() => {})
    await shutdown.drain(afterMs, { open, now, pause })
  })
}
