import type { Context } from '../context.ts'
import { isCarried } from '../provider/route.ts'
import type { PlannedAttempt } from '../routing/plan.ts'

/**
 * With more open requests than this, streams that come through the daemon let it take its turn first. A choice between one stream at
 * a time, which the question would delay, and 512 that begin at once, which overran it without
 * (docs/performance-findings.md, "First delta"); numbers in between were not measured.
 */
const CROWD = 16

/** What decides how certain it must be that the daemon is alive. */
interface Delivery {
  readonly isStream: boolean
  readonly hasReceipt: boolean
}

/** What is still asked of the daemon while the provider works. */
interface DaemonAsked {
  /**
   * Resolves once the daemon has shown that it was alive when it was asked; nothing may be delivered before. It may reject
   * without being waited for. Absent: nothing more is to be waited for.
   */
  readonly beside?: Promise<unknown>
}

/**
 * Refuses a request while the daemon is unreachable. Where a signature precedes the answer, a cached state is enough; an
 * answer that is delivered before it is signed, or without a receipt, needs a current one.
 *
 * A stream waits for that beside its provider, and only its first event after it: a state that was read a moment ago has
 * let it in, as it does a whole answer. One that can only come through the daemon need not ask at all, since its first byte
 * shows that the daemon is alive. But where many requests are open, streams that come through the daemon ask first: hundreds
 * that begin together would overrun it.
 * @throws LinkUnavailable
 */
export async function askDaemon(
  { link, now, openRequests }: Pick<Context, 'link' | 'now' | 'openRequests'>,
  { attempts }: { readonly attempts: readonly Pick<PlannedAttempt, 'route'>[] },
  { isStream, hasReceipt }: Delivery,
): Promise<DaemonAsked> {
  const mustAskFirst = isStream
    ? attempts.some(({ route }) => isCarried(route)) && openRequests() > CROWD
    : !hasReceipt
  if (mustAskFirst) {
    await link.stateReadAfter(now())
    return {}
  }
  await link.state()
  if (!isStream || attempts.every(({ route }) => isCarried(route))) return {}
  const beside = link.stateReadAfter(now())
  beside.catch(() => {})
  return { beside }
}
