/**
 * Whether a request wants a receipt (header `X-Service-Receipt`). Only the value `false`, in any case, disables it:
 * an unneeded receipt does no harm.
 */
export function wantsReceipt(headers: Headers): boolean {
  return headers.get('x-service-receipt')?.trim().toLowerCase() !== 'false'
}
