import { settleDeps } from '../context.ts'
import { errorFields } from '../http/error-fields.ts'
import { pause } from '../routing/budget.ts'
import type { Exchange } from '../settle/exchange.ts'
import { settleDelivered } from '../settle/settle.ts'
import type { AdmittedChat } from './admitted.ts'

/** What settling needs from an admitted request. */
type Admitted = Pick<AdmittedChat, 'context' | 'admission'>

/** Pauses before each retry of a failed settlement, ms; their sum is shorter than the reservation is kept. */
const RETRY_PAUSES_MS = [1_000, 2_000, 4_000, 8_000, 16_000]

/**
 * Settles an exchange without a receipt. If that fails, it is retried in the background for half a minute; if the storage
 * stays unavailable, the sweep releases the reservation.
 */
export async function settleUnreceipted(admitted: Admitted, exchange: Exchange): Promise<void> {
  if (await wasSettled(admitted, exchange)) return
  admitted.context.waitUntil(settleLater(admitted, exchange))
}

async function settleLater(admitted: Admitted, exchange: Exchange): Promise<void> {
  for (const ms of RETRY_PAUSES_MS) {
    await pause(ms)
    if (await wasSettled(admitted, exchange)) return
  }
}

async function wasSettled({ context, admission }: Admitted, exchange: Exchange): Promise<boolean> {
  try {
    await settleDelivered(exchange, settleDeps(context, admission.customerId))
    return true
  } catch (error) {
    context.log('settle_failed', { request_id: context.requestId, ...errorFields(error) })
    return false
  }
}
