import { equalBytes, utf8 } from '../../protocol/bytes.ts'
import { sha256 } from '../../protocol/digest.ts'
import { readBearer } from './bearer.ts'

/**
 * Whether a secret is the expected one. Compares digests, so that the duration reveals neither the length nor a common
 * prefix. An empty expected secret matches nothing.
 */
export async function isSecret(given: string, expected: string): Promise<boolean> {
  const [left, right] = await Promise.all([sha256(utf8(given)), sha256(utf8(expected))])
  return expected !== '' && equalBytes(left, right)
}

/** Whether the request's bearer token is the expected secret. */
export function bringsSecret(request: Request, expected: string): Promise<boolean> {
  return isSecret(readBearer(request) ?? '', expected)
}
