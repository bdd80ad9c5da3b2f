/** The header with the receipt's id. The receipt of a stream can be fetched after its last event. */
export function receiptHeader(receiptId: string | null): Readonly<Record<string, string>> {
  return receiptId === null ? {} : { 'x-receipt-id': receiptId }
}
