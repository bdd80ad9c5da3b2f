import {
  AEAD_AES_256_GCM,
  CipherSuite,
  KDF_HKDF_SHA256,
  KEM_DHKEM_X25519_HKDF_SHA256,
  type SenderContext,
} from 'hpke'
import {
  concatBytes,
  copyBytes,
  fromHex,
  toHex,
  utf8,
  type Bytes,
} from '../../src/protocol/bytes.ts'
import { AnswerCipher } from '../../src/protocol/ehbp-answer.ts'
import { encodeFrame, FrameReader } from '../../src/protocol/ehbp-frames.ts'
import { readKeyConfig } from '../../src/protocol/hpke-key-config.ts'

/** An EHBP client that can also misbehave. */
export interface Sender {
  /** Lowercase hex, for the header. */
  readonly enc: string
  /** The body in one frame a part. */
  seal(...parts: readonly string[]): Promise<Bytes>
  /** The plaintexts of the frames of an answer. */
  open(answer: Response): Promise<readonly string[]>
  /** The same for the part of a body that has arrived so far. */
  openFrames(body: Uint8Array, responseNonce: string): Promise<readonly string[]>
}

export async function senderTo(keyConfig: Uint8Array): Promise<Sender> {
  const suite = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM)
  const publicKey = await suite.DeserializePublicKey(readKeyConfig(keyConfig))
  const info = utf8('ehbp request')
  const { encapsulatedSecret, ctx } = await suite.SetupSender(publicKey, { info })
  const enc = copyBytes(encapsulatedSecret)
  const openFrames = (body: Uint8Array, responseNonce: string) =>
    openAll(ctx, enc, body, responseNonce)
  return {
    enc: toHex(enc),
    seal: async (...parts) => {
      const frames: Bytes[] = []
      for (const part of parts) frames.push(encodeFrame(await ctx.Seal(utf8(part))))
      return concatBytes(...frames)
    },
    open: async (answer) =>
      openFrames(await answer.bytes(), answer.headers.get('ehbp-response-nonce') ?? ''),
    openFrames,
  }
}

async function openAll(
  context: SenderContext,
  enc: Bytes,
  body: Uint8Array,
  responseNonce: string,
): Promise<readonly string[]> {
  const secret = copyBytes(await context.Export(utf8('ehbp response'), 32))
  const cipher = await AnswerCipher.derive(secret, enc, fromHex(responseNonce))
  const reader = new FrameReader(1_000_000)
  const plain: string[] = []
  for (const frame of reader.push(body)) {
    plain.push(new TextDecoder().decode(await cipher.open(frame)))
  }
  reader.end()
  return plain
}
