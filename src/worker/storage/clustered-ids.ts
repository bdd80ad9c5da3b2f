/** Hexadecimal digits of a time in ms, which RFC 9562 (5.7) puts first in a UUID v7. */
const TIME_DIGITS = 12

/**
 * Makes ids that are close together in the ledger's indexes if they are made at the same time: they begin with the time,
 * like a UUID v7. Rows that all workers write at one time are then neighbours (within each customer, where the key begins
 * with the customer). A commit writes a few neighbouring pages; with random ids it would write a page for each row and, in a
 * large table, read that page first. Everything but the time digits is that of a UUID v4, because clients may check that
 * form.
 * @param randomId makes a UUID v4, of which 74 random bits are kept
 * @param now ms since the epoch
 */
export function clusteredIds(randomId: () => string, now: () => number): () => string {
  return () => {
    const time = now().toString(16).padStart(TIME_DIGITS, '0')
    const random = randomId().slice('xxxxxxxx-xxxx-'.length)
    return `${time.slice(0, 8)}-${time.slice(8)}-${random}`
  }
}
