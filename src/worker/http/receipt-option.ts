/** The header with the receipt's id. The receipt of a stream can be fetched after its last event. */
export function receiptHeader(receiptId: string | null): Readonly<Record<string, string>> {
  return receiptId === null ? {} : { 'x-receipt-id': receiptId }
}

/**
 * Whether the caller wants a receipt (header `X-Service-Receipt`). Only the value `false`, in any case, disables it:
 * an unneeded receipt does no harm.
 */
export function wantsReceipt(headers: Headers): boolean {
  return headers.get('x-service-receipt')?.trim().toLowerCase() !== 'false'
}
