import {
  AEAD_AES_256_GCM,
  CipherSuite,
  KDF_HKDF_SHA256,
  KEM_DHKEM_X25519_HKDF_SHA256,
  NotSupportedError,
} from 'hpke'
import { copyBytes, fromHex, toHex, utf8, type Bytes } from '../protocol/bytes.ts'
import { AnswerCipher } from '../protocol/ehbp-answer.ts'
import { encodeFrame } from '../protocol/ehbp-frames.ts'
import {
  REQUEST_INFO,
  RESPONSE_LABEL,
  RESPONSE_NONCE_BYTES,
  SECRET_BYTES,
} from '../protocol/ehbp.ts'
import { readKeyConfig } from '../protocol/hpke-key-config.ts'
import { AnswerRefused, ClientError } from './errors.ts'

/** An encrypted request. */
export interface EncryptedRequest {
  /** The encapsulated key, for the header. */
  readonly enc: string
  readonly body: Bytes
  /**
   * The cipher for its answer.
   * @throws AnswerRefused when the nonce is malformed
   */
  answerCipher(responseNonce: string): Promise<AnswerCipher>
}

/**
 * Encrypts one body, which must not be empty, in a single frame: EHBP does not authenticate the end of a request of
 * several frames.
 * @throws ClientError `unsupported_runtime` where the runtime has no X25519
 */
export async function encryptRequest(keyConfig: Bytes, body: Bytes): Promise<EncryptedRequest> {
  const { encapsulatedSecret, ctx } = await setUp(readKeyConfig(keyConfig))
  const enc = copyBytes(encapsulatedSecret)
  return {
    enc: toHex(enc),
    body: encodeFrame(await ctx.Seal(body)),
    answerCipher: async (responseNonce) => {
      const secret = copyBytes(await ctx.Export(utf8(RESPONSE_LABEL), SECRET_BYTES))
      return AnswerCipher.derive(secret, enc, readNonce(responseNonce))
    },
  }
}

async function setUp(publicKey: Bytes) {
  const suite = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM)
  try {
    const key = await suite.DeserializePublicKey(publicKey)
    return await suite.SetupSender(key, { info: utf8(REQUEST_INFO) })
  } catch (cause) {
    if (!(cause instanceof NotSupportedError)) throw cause
    const message = 'this runtime has no X25519: use a newer browser or runtime'
    throw new ClientError('unsupported_runtime', message, { cause })
  }
}

function readNonce(hex: string): Bytes {
  if (!new RegExp(`^[0-9a-f]{${2 * RESPONSE_NONCE_BYTES}}$`).test(hex)) {
    throw new AnswerRefused('the nonce of the answer is malformed')
  }
  return fromHex(hex)
}
