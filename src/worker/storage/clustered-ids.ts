/** Hexadecimal digits of a time in ms, as RFC 9562 (5.7) puts them first. */
const TIME_DIGITS = 12

/**
 * Makes UUIDs v7, which the indexes of the ledger keep together: they begin with the time, so that what all workers of one moment
 * write is next to each other, of each customer in the keys that begin with a customer. A commit of a moment's rows then writes a
 * few neighbouring pages, where ids without any order would be one page each, and a random one to read besides, as soon as
 * there are many rows.
 * @param randomId makes a UUID v4, of which 74 random bits are kept
 * @param now ms since the epoch
 */
export function clusteredIds(randomId: () => string, now: () => number): () => string {
  return () => {
    const time = now().toString(16).padStart(TIME_DIGITS, '0')
    const random = randomId().slice('xxxxxxxx-xxxx-4'.length)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${random}`
  }
}
