import { equalBytes, utf8 } from '../../protocol/bytes.ts'
import { sha256 } from '../../protocol/digest.ts'
import { readBearer } from './bearer.ts'

/**
 * Whether a secret is the one that is expected. They are compared by digest, so that the duration reveals neither its length nor a
 * prefix. An empty one matches nothing.
 */
export async function isSecret(given: string, expected: string): Promise<boolean> {
  const [left, right] = await Promise.all([sha256(utf8(given)), sha256(utf8(expected))])
  return expected !== '' && equalBytes(left, right)
}

/** The same of the token that a request brings; one without a token is none. */
export function bringsSecret(request: Request, expected: string): Promise<boolean> {
  return isSecret(readBearer(request) ?? '', expected)
}
