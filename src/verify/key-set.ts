import * as z from 'zod'
import { es256JwkSchema, jwkThumbprint, type Es256Jwk } from '../protocol/jwk.ts'
import { readDocument } from '../protocol/read-document.ts'

/** A JWKS (RFC 7517), as far as keys are sought in it. */
export const keySetSchema = z.looseObject({
  keys: z.array(z.looseObject({ kid: z.string().optional() })),
})

/**
 * Finds the key with a given `kid` in a JWKS (RFC 7517), or says what is wrong. The `kid` must be the key's own
 * thumbprint, so that no other key can be published under its name.
 * @throws MalformedEvidence when it is not a JWKS
 */
export async function findSigningKey(
  jwks: unknown,
  kid: string | undefined,
): Promise<Es256Jwk | string> {
  const { keys } = readDocument(keySetSchema, jwks, 'JWKS')
  const named = keys.filter((key) => key.kid === kid)
  if (kid === undefined || named.length === 0)
    return `the router has no key ${kid ?? 'without kid'}`
  if (named.length > 1) return `the router has ${named.length} keys ${kid}`
  const key = es256JwkSchema.safeParse(named[0])
  if (!key.success) return `key ${kid} is no public ES256 signing key`
  if ((await jwkThumbprint(key.data)) !== kid) return `key ${kid} is not the one its name says`
  return key.data
}
