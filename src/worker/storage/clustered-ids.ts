/** How many ids in a row begin alike: those of some seconds of a busy worker. */
const CLUSTER = 4_096

/** Hexadecimal digits that they share; 90 random bits are left to each. */
const SHARED_DIGITS = 8

/**
 * Makes UUIDs v4 that the indexes of the ledger keep together: thousands in a row begin with the same 32 random bits. A
 * commit of a moment's rows then writes a few neighbouring pages, where ids without any order would be one page each, and
 * a random one to read besides, as soon as there are many rows.
 * @param randomId makes a UUID v4
 */
export function clusteredIds(randomId: () => string): () => string {
  let shared = ''
  let left = 0
  return () => {
    const id = randomId()
    if (left === 0) {
      shared = id.slice(0, SHARED_DIGITS)
      left = CLUSTER
    }
    left -= 1
    return shared + id.slice(SHARED_DIGITS)
  }
}
