import {
  AEAD_AES_256_GCM,
  CipherSuite,
  KDF_HKDF_SHA256,
  KEM_DHKEM_X25519_HKDF_SHA256,
  type Key,
  type KEM,
  type RecipientContext,
} from 'hpke'
import { utf8, type Bytes } from '../../protocol/bytes.ts'
import { REQUEST_INFO } from '../../protocol/ehbp.ts'

/** The daemon holds the private key; the library requires this placeholder. */
const DAEMONS_KEY: Key = {
  type: 'private',
  algorithm: { name: 'X25519' },
  extractable: false,
}

/**
 * The HPKE context of one request, from the shared secret that the daemon has decapsulated: everything after that
 * (RFC 9180 section 5.1) needs no private key.
 */
export function openRecipient(enc: Bytes, sharedSecret: Bytes): Promise<RecipientContext> {
  const daemon = (): KEM => ({ ...KEM_DHKEM_X25519_HKDF_SHA256(), Decap: async () => sharedSecret })
  const suite = new CipherSuite(daemon, KDF_HKDF_SHA256, AEAD_AES_256_GCM)
  return suite.SetupRecipient(DAEMONS_KEY, enc, { info: utf8(REQUEST_INFO) })
}
