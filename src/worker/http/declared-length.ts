const DIGITS = /^\d+$/

/**
 * The length of a body as its `Content-Length` declares it, in bytes; undefined where nothing holds the sender to it. A runtime may
 * accept a length that is given several times (`5, 5`), and follows the transfer coding where there is one as well: then a
 * body can be longer than declared.
 */
export function declaredLength(headers: Pick<Headers, 'get' | 'has'>): number | undefined {
  const declared = headers.get('content-length')
  if (declared === null || !DIGITS.test(declared) || headers.has('transfer-encoding'))
    return undefined
  return Number(declared)
}
