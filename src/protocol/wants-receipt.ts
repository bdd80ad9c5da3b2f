/**
 * Whether a request wants a receipt (header `X-Service-Receipt`). Only the value `false`, in any case, disables it, also
 * where it is sent more than once: an unneeded receipt does no harm.
 */
export function wantsReceipt(headers: Headers): boolean {
  const values = headers.get('x-service-receipt')?.split(',') ?? ['']
  return values.some((value) => value.trim().toLowerCase() !== 'false')
}
