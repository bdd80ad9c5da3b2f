/**
 * How a receipt's compact JWS is stored. What it has in common with others, its head, is stored once, in `receipt_heads`;
 * the receipt's own row has the head's SHA-256 in hex, a colon, and the rest. A compact JWS contains no colon, so one that
 * is stored whole, as before there were heads, cannot be mistaken for this form.
 *
 * The digest is no column of its own, because SQLite writes a row that is older than a column with one byte more: the
 * body of an old receipt would no longer be overwritten in place when it is erased (docs/storage.md).
 */

/** Length of a SHA-256 in hex, with which the form begins. */
export const HEAD_NAME_CHARACTERS = 64

const SEPARATOR = ':'

/** @param headSha256 lowercase hex */
export function storedJws(headSha256: string, tail: string): string {
  return headSha256 + SEPARATOR + tail
}

/**
 * The exact compact JWS.
 * @param head what `receipt_heads` has under the first `HEAD_NAME_CHARACTERS`; null: nothing
 * @throws Error when the head is missing
 */
export function wholeJws(stored: string, head: string | null): string {
  if (stored[HEAD_NAME_CHARACTERS] !== SEPARATOR) return stored
  if (head === null) throw new Error('internal error: a stored receipt whose head is missing')
  return head + stored.slice(HEAD_NAME_CHARACTERS + SEPARATOR.length)
}
