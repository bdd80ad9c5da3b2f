import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { concatBytes, copyBytes, fromHex, toHex, utf8, type Bytes } from '../../protocol/bytes.ts'
import type { MessageKey } from './judged-evidence.ts'

/** Whether the signature (hex, with or without `0x`) over the text was made with that key. Never throws. */
export async function verifyMessageSignature(
  text: string,
  signature: string,
  key: Pick<MessageKey, 'algorithm' | 'address'>,
): Promise<boolean> {
  try {
    const bytes = fromHex(signature.toLowerCase().replace(/^0x/, ''))
    return await VERIFIERS[key.algorithm](utf8(text), bytes, key.address)
  } catch {
    return false
  }
}

type Verifier = (text: Bytes, signature: Bytes, address: string) => Promise<boolean> | boolean

const VERIFIERS: Readonly<Record<MessageKey['algorithm'], Verifier>> = {
  ed25519: verifyEd25519,
  ecdsa: verifyPersonalSign,
}

/** RFC 8032; the address is the raw public key. */
async function verifyEd25519(text: Bytes, signature: Bytes, address: string): Promise<boolean> {
  const key = await crypto.subtle.importKey('raw', fromHex(address), 'Ed25519', false, ['verify'])
  return crypto.subtle.verify('Ed25519', key, signature, text)
}

const RECOVERY_OFFSET = 27

/** EIP-191 version 0x45 over secp256k1: r, s and v; the address is recovered from the signature and compared. */
function verifyPersonalSign(text: Bytes, signature: Bytes, address: string): boolean {
  if (signature.length !== 65) return false
  const [v = 0] = signature.subarray(64)
  const recovery = v >= RECOVERY_OFFSET ? v - RECOVERY_OFFSET : v
  if (recovery > 1) return false
  const prefix = utf8(`\u0019Ethereum Signed Message:\n${text.length}`)
  const digest = keccak_256(concatBytes(prefix, text))
  const point = secp256k1.Signature.fromBytes(signature.slice(0, 64), 'compact')
    .addRecoveryBit(recovery)
    .recoverPublicKey(digest)
  const publicKey = copyBytes(point.toBytes(false))
  return toHex(keccak_256(publicKey.slice(1)).slice(12)) === address
}
