import type { Context } from '../context.ts'
import type { PlannedAttempt } from '../routing/plan.ts'

/** What decides how certain it must be that the daemon is alive. */
interface Delivery {
  readonly isStream: boolean
  readonly hasReceipt: boolean
}

/** What is still asked of the daemon while the provider works. */
interface DaemonAsked {
  /**
   * Resolves once the daemon has shown that it was alive when it was asked; nothing may be delivered before. It may reject
   * without being waited for. Absent: it has shown that already.
   */
  readonly beside?: Promise<unknown>
}

/**
 * Refuses a request while the daemon is unreachable. Where a signature precedes the answer, a cached state is enough; an
 * answer that is delivered before it is signed, or without a receipt, needs a current one. A stream of providers that are
 * called directly does not wait for it before its provider is asked, but before its first event: a state that was read a
 * moment ago has let it in, as it does a whole answer. One that may come through the daemon waits at once, so that hundreds
 * that begin together do not overrun it.
 * @throws LinkUnavailable
 */
export async function askDaemon(
  { link, now }: Pick<Context, 'link' | 'now'>,
  { attempts }: { readonly attempts: readonly Pick<PlannedAttempt, 'route'>[] },
  { isStream, hasReceipt }: Delivery,
): Promise<DaemonAsked> {
  if (!isStream && hasReceipt) {
    await link.state()
    return {}
  }
  if (!isStream || attempts.some(isPinned)) {
    await link.stateReadAfter(now())
    return {}
  }
  await link.state()
  const beside = link.stateReadAfter(now())
  beside.catch(() => {})
  return { beside }
}

const isPinned = ({ route }: Pick<PlannedAttempt, 'route'>) => route.provider.adapter !== 'none'
