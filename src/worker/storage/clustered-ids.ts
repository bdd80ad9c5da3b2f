/** Hexadecimal digits of a time in ms, which RFC 9562 (5.7) puts first in a UUID v7. */
const TIME_DIGITS = 12

/**
 * Makes ids that the indexes of the ledger keep together: they begin with the time, so that what all workers of one moment
 * write is next to each other, of each customer in the keys that begin with a customer. A commit of a moment's rows then writes a
 * few neighbouring pages, where ids without any order would be one page each, and a random one to read besides, as soon as
 * there are many rows. Otherwise they are UUIDs v4, since clients may hold an id against that form.
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
