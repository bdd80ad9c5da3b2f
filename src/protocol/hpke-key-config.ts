import { concatBytes, copyBytes, type Bytes } from './bytes.ts'
import { MalformedEvidence } from './malformed-evidence.ts'

const DOCUMENT = 'HPKE key configuration'

/** DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM (RFC 9180 section 7). */
const KEM_ID = 0x0020
const KDF_ID = 0x0001
const AEAD_ID = 0x0002

const PUBLIC_KEY_BYTES = 32
const HEAD_BYTES = 3

/** The one cipher suite: its length in two bytes, then KDF and AEAD. */
const SUITES = Uint8Array.of(0, 4, 0, KDF_ID, 0, AEAD_ID)

/** One key configuration of RFC 9458 section 3, with key id 0 and one cipher suite, as in EHBP 0.3.1. */
export function encodeKeyConfig(publicKey: Uint8Array): Bytes {
  return concatBytes(Uint8Array.of(0, 0, KEM_ID), publicKey, SUITES)
}

/**
 * The public key of a key configuration, 32 bytes.
 * @throws MalformedEvidence when it is not exactly one configuration of the one suite that EHBP 0.3.1 uses
 */
export function readKeyConfig(config: Uint8Array): Bytes {
  const publicKey = config.slice(HEAD_BYTES, HEAD_BYTES + PUBLIC_KEY_BYTES)
  const expected = encodeKeyConfig(publicKey)
  const same =
    config.length === expected.length && config.every((byte, at) => byte === expected[at])
  if (!same)
    throw new MalformedEvidence(DOCUMENT, 'not one key for X25519, HKDF-SHA256, AES-256-GCM')
  return copyBytes(publicKey)
}
