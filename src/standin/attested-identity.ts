import { z } from 'zod'
import { adoptTlsIdentity, makeTlsIdentity } from '../enclave/keys/tls-identity.ts'
import {
  importSigningKey,
  makeSigningKey,
  type SigningKey,
} from '../enclave/release/signing-key.ts'
import type { DaemonTls } from '../protocol/boot.ts'

/** What relying parties know an attested stand-in by: the root of its release, and its TLS key. */
export interface StandinIdentity {
  readonly root: SigningKey
  readonly tls: DaemonTls
  /** JSON that makes a later process the same stand-in. The keys in it are worth nothing to anybody. */
  readonly kept: string
}

const storedSchema = z.strictObject({
  root: z.looseObject({}),
  tls: z.strictObject({ certPem: z.string(), keyPem: z.string() }),
})

/** The identity that an earlier process had, or a new one. */
export async function openStandinIdentity(
  kept: string | undefined,
  now: Date,
): Promise<StandinIdentity> {
  if (kept !== undefined) {
    const { root, tls } = storedSchema.parse(JSON.parse(kept))
    return { root: await importSigningKey(root), tls: await adoptTlsIdentity(tls), kept }
  }
  const [root, tls] = await Promise.all([
    makeSigningKey({ extractable: true }),
    makeTlsIdentity([], now),
  ])
  const { certPem, keyPem } = tls
  const jwk = await crypto.subtle.exportKey('jwk', root.privateKey)
  return { root, tls, kept: JSON.stringify({ root: jwk, tls: { certPem, keyPem } }) }
}
