/** Under which id the receipt of an answer will be found; of a stream, once its last event has come. */
export function receiptHeader(receiptId: string | null): Readonly<Record<string, string>> {
  return receiptId === null ? {} : { 'x-receipt-id': receiptId }
}

/**
 * Whether the caller wants a receipt (header `X-Service-Receipt`). It is left out only for the word `false`, in
 * any case; every other value keeps it, because a receipt too many does no harm.
 */
export function wantsReceipt(headers: Headers): boolean {
  return headers.get('x-service-receipt')?.trim().toLowerCase() !== 'false'
}
