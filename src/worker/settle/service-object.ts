import type { Exchange } from './exchange.ts'

/** The extension object `service` of an answer (see docs/api.md). */
export interface ServiceObject {
  readonly receipt_id?: string
  readonly requested_route: string
  readonly routed_model: string
  readonly failover: boolean
}

/** The `service` object of an exchange; without a receipt it has no `receipt_id` member at all. */
export function serviceObject(
  exchange: Pick<Exchange, 'requestedRoute' | 'route' | 'failover'>,
  receiptId: string | null,
): ServiceObject {
  return {
    ...(receiptId === null ? {} : { receipt_id: receiptId }),
    requested_route: exchange.requestedRoute,
    routed_model: exchange.route.id,
    failover: exchange.failover,
  }
}
