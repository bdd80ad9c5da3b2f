/**
 * How a receipt's compact JWS is stored. Its head, which it shares with other receipts, is stored once, in `receipt_heads`;
 * the receipt's own row has the head's SHA-256 in hex, a colon, and the rest. A compact JWS contains no colon, so a JWS that
 * an earlier release stored whole cannot be mistaken for this form.
 *
 * The digest has no column of its own, because SQLite writes a row that is older than a column with one byte more: the body
 * of an old receipt could then not be overwritten in place when it is erased (docs/storage.md).
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
 * @param head the text that `receipt_heads` has under the first `HEAD_NAME_CHARACTERS`; null: none
 * @throws Error when the head is missing
 */
export function wholeJws(stored: string, head: string | null): string {
  if (stored[HEAD_NAME_CHARACTERS] !== SEPARATOR) return stored
  if (head === null) throw new Error('internal error: a stored receipt whose head is missing')
  return head + stored.slice(HEAD_NAME_CHARACTERS + SEPARATOR.length)
}
