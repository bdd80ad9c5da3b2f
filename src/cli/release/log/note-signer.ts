import { ed25519 } from '@noble/curves/ed25519.js'
import {
  concatBytes,
  fromBase64,
  toBase64,
  toHex,
  utf8,
  type Bytes,
} from '../../../protocol/bytes.ts'
import { cosignedMessage, encodeCosignature } from '../../../verify/transparency/checkpoint.ts'
import {
  noteKey,
  type NoteKey,
  type NoteKeyType,
  type NoteSignature,
} from '../../../verify/transparency/signed-note.ts'
import { ReleaseError } from '../release-error.ts'

/** A private key that signs notes, in memory. */
export interface NoteSigner {
  readonly key: NoteKey
  /** Signs a checkpoint's text; a witness's signature also covers the time, in seconds since the epoch. */
  sign(text: string, seconds: number): NoteSignature
}

const SEED_BYTES = 32
const PREFIX = 'PRIVATE+KEY+'

/** The type bytes of private keys; the first is that of Go's note package. */
const TYPES: readonly (readonly [byte: number, type: NoteKeyType])[] = [
  [0x01, 'ed25519'],
  [0x04, 'cosignature'],
]

/** @param seed 32 random bytes */
export function noteSigner(name: string, type: NoteKeyType, seed: Bytes): NoteSigner {
  const key = noteKey(name, type, new Uint8Array(ed25519.getPublicKey(seed)))
  const signed = (message: Bytes) => new Uint8Array(ed25519.sign(message, seed))
  const signature: Readonly<Record<NoteKeyType, (text: string, seconds: number) => Bytes>> = {
    ed25519: (text) => signed(utf8(text)),
    cosignature: (text, seconds) =>
      encodeCosignature(seconds, signed(cosignedMessage(text, seconds))),
  }
  return {
    key,
    sign: (text, seconds) => ({
      name,
      keyId: key.keyId,
      signature: signature[type](text, seconds),
    }),
  }
}

/** The private key as text, in the format of Go's note package. */
export function formatNoteSigner({ key }: NoteSigner, seed: Bytes): string {
  const byte = TYPES.find(([, type]) => type === key.type)?.[0] ?? 0
  return `${PREFIX}${key.name}+${toHex(key.keyId)}+${toBase64(concatBytes(Uint8Array.of(byte), seed))}\n`
}

/** @throws ReleaseError when the key is malformed; the message contains no part of the key */
export function parseNoteSigner(text: string): NoteSigner {
  const [name = '', id = '', ...rest] = text.trim().slice(PREFIX.length).split('+')
  let bytes: Bytes
  try {
    bytes = fromBase64(rest.join('+'))
  } catch {
    throw new ReleaseError('the private key of a note is not of the expected form')
  }
  const type = TYPES.find(([byte]) => byte === bytes[0])?.[1]
  if (!text.startsWith(PREFIX) || type === undefined || bytes.length !== 1 + SEED_BYTES) {
    throw new ReleaseError('the private key of a note is not of the expected form')
  }
  const signer = noteSigner(name, type, bytes.slice(1))
  if (toHex(signer.key.keyId) !== id) {
    throw new ReleaseError('the id of the private key is not that of its name and bytes')
  }
  return signer
}
