import { KEM_DHKEM_X25519_HKDF_SHA256 } from 'hpke'
import { copyBytes, type Bytes } from '../../protocol/bytes.ts'
import { sha256Hex } from '../../protocol/digest.ts'
import { encodeKeyConfig } from '../../protocol/hpke-key-config.ts'

/**
 * The key to which request bodies are encrypted. It is generated in memory, cannot be exported and ends with the
 * process: this object only decapsulates.
 */
export interface HpkeKey {
  /** The published configuration of its public half (RFC 9458 section 3). */
  readonly config: Bytes
  /** SHA-256 of `config`, lowercase hex; bound by reports. */
  readonly configSha256: string
  /**
   * The shared secret of an encapsulated key, 32 bytes (RFC 9180 section 4.1). Any other point yields a secret as well:
   * only decrypting the first frame shows whether the sender used this key.
   * @throws Error when the encapsulated key is a point of low order
   */
  decapsulate(enc: Bytes): Promise<Bytes>
}

/** Makes a new X25519 key. */
export async function makeHpkeKey(): Promise<HpkeKey> {
  const kem = KEM_DHKEM_X25519_HKDF_SHA256()
  const { publicKey, privateKey } = await kem.GenerateKeyPair(false)
  const config = encodeKeyConfig(await kem.SerializePublicKey(publicKey))
  return {
    config,
    configSha256: await sha256Hex(config),
    decapsulate: async (enc) => copyBytes(await kem.Decap(enc, privateKey, publicKey)),
  }
}
