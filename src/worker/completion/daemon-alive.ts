import type { Context } from '../context.ts'
import type { PlannedAttempt } from '../routing/plan.ts'

/** What decides how certain the daemon must be. */
export interface AliveTerms {
  readonly stream: boolean
  /** Whether the answer gets a receipt. */
  readonly receipt: boolean
  readonly attempts: readonly Pick<PlannedAttempt, 'route'>[]
}

/**
 * Refuses a request while the daemon is unreachable. Where a signature precedes the answer, a cached state is enough; an answer
 * that is delivered before it is signed, or without a receipt, needs a current one. A stream that can only come through the
 * daemon does not: its first byte shows that the daemon is alive.
 * @throws LinkUnavailable
 */
export async function daemonAlive(
  { link, now }: Pick<Context, 'link' | 'now'>,
  { stream, receipt, attempts }: AliveTerms,
): Promise<void> {
  const current = stream ? !attempts.every(isPinned) : !receipt
  await (current ? link.stateReadAfter(now()) : link.state())
}

const isPinned = ({ route }: AliveTerms['attempts'][number]) => route.provider.adapter !== 'none'
