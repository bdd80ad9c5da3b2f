import { bringsSecret } from './auth/secret.ts'
import { ApiError } from './http/errors.ts'
import { answerUntil, errorReply } from './http/reply.ts'
import type { Shutdown } from './limits/shutdown.ts'
import { pause } from './routing/budget.ts'

export interface DrainParts {
  /** What the supervisor proves itself with; absent where no supervisor stops this process. */
  readonly token: string | undefined
  readonly shutdown: Shutdown
  /** Number of open requests. */
  readonly open: () => number
  /** Ms. */
  readonly now: () => number
}

/**
 * Answers the supervisor before it stops this process (`?after_ms=`). The answer ends once no request is open, after those were ended
 * that are still open when the time is up. It looks for them only when the request has ended, by which no more can come.
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
