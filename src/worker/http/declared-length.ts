const DIGITS = /^\d+$/

/**
 * The length of a body in bytes as its `Content-Length` declares it; undefined where the sender is not bound to it. A
 * runtime may accept a repeated length (`5, 5`), and ignores the length if there is a transfer coding: in both cases the
 * body can be longer than declared.
 */
export function declaredLength(headers: Pick<Headers, 'get' | 'has'>): number | undefined {
  const declared = headers.get('content-length')
  if (declared === null || !DIGITS.test(declared) || headers.has('transfer-encoding'))
    return undefined
  return Number(declared)
}
