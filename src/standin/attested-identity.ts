import { z } from 'zod'
import { adoptTlsIdentity, makeTlsIdentity } from '../enclave/keys/tls-identity.ts'
import {
  importSigningKey,
  makeSigningKey,
  type SigningKey,
} from '../enclave/release/signing-key.ts'
import type { DaemonTls } from '../protocol/boot.ts'

/** The values by which relying parties identify an attested stand-in: the root of its release, and its TLS key. */
export interface StandinIdentity {
  readonly root: SigningKey
  readonly tls: DaemonTls
  /** JSON that restores the same stand-in in a later process. The keys in it protect nothing real. */
  readonly kept: string
}

const storedSchema = z.strictObject({
  root: z.looseObject({}),
  tls: z.strictObject({ certPem: z.string(), keyPem: z.string() }),
})

/** The identity of an earlier process, or a new one. */
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
