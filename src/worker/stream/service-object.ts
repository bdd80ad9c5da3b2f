/** The extension object `service` of an answer (see docs/api.md). */
export interface ServiceObject {
  readonly receipt_id?: string
  readonly requested_route: string
  readonly routed_model: string
  readonly failover: boolean
}

/** How a request was routed. */
export interface Routed {
  /** The requested primary route in canonical form. */
  readonly requestedRoute: string
  /** The concrete route that served. */
  readonly route: { readonly id: string }
  readonly failover: boolean
}

/** The `service` object of an exchange; without a receipt it has no member `receipt_id`. */
export function serviceObject(
  { requestedRoute, route, failover }: Routed,
  receiptId: string | null,
): ServiceObject {
  return {
    ...(receiptId === null ? {} : { receipt_id: receiptId }),
    requested_route: requestedRoute,
    routed_model: route.id,
    failover,
  }
}
