import type { Context } from '../context.ts'
import { isCarried } from '../provider/route.ts'
import type { PlannedAttempt } from '../routing/plan.ts'

/**
 * With more open requests than this, a stream that goes through the daemon checks the daemon first. A compromise between one
 * stream at a time, which the check would delay, and 512 that begin at once, which overloaded the daemon without it
 * (docs/performance-findings.md, "First delta"); numbers in between were not measured.
 */
const CROWD = 16

/** What decides how recent the proof that the daemon is alive must be. */
interface Delivery {
  readonly isStream: boolean
  readonly hasReceipt: boolean
}

/** A check of the daemon that continues while the provider works. */
interface DaemonAsked {
  /**
   * Resolves once the daemon has proved that it was alive when it was asked; nothing may be delivered before. Its rejection
   * may be ignored. Absent: no check is pending.
   */
  readonly daemonAlive?: Promise<unknown>
}

/**
 * Refuses a request while the daemon is unreachable. If a signature precedes the answer, a cached state is enough; an answer
 * that is delivered before it is signed, or without a receipt, needs a current one.
 *
 * A stream starts its provider while that state is fetched, and only its first event waits for it; as for a whole answer, a
 * recent state is enough to start. A stream that can only come through the daemon needs no check, since its first byte shows
 * that the daemon is alive. But while many requests are open, streams that come through the daemon check first: hundreds
 * that begin together would overload it.
 * @throws LinkUnavailable when the daemon does not answer
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
  const daemonAlive = link.stateReadAfter(now())
  daemonAlive.catch(() => {})
  return { daemonAlive }
}
