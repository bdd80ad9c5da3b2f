import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  concatBytes,
  equalBytes,
  fromBase64,
  toBase64,
  toHex,
  utf8,
  type Bytes,
} from '../../protocol/bytes.ts'
import { TransparencyError } from './transparency-error.ts'

/** Signed notes (c2sp.org/signed-note): a text, an empty line, and a line for each signature. */
export interface SignedNote {
  /** The signed text, including its last newline. */
  readonly text: string
  readonly signatures: readonly NoteSignature[]
}

export interface NoteSignature {
  readonly name: string
  readonly keyId: Bytes
  readonly signature: Bytes
}

/** What a key signs: a note's text itself, or a witness's statement about it with the time. */
export type NoteKeyType = 'ed25519' | 'cosignature'

/** A public key that signs notes, with its name and id. */
export interface NoteKey {
  readonly name: string
  readonly keyId: Bytes
  readonly type: NoteKeyType
  readonly publicKey: Bytes
}

/** The signature type bytes of c2sp.org/signed-note and c2sp.org/tlog-cosignature. */
const TYPE_BYTE: Readonly<Record<NoteKeyType, number>> = { ed25519: 0x01, cosignature: 0x04 }

const KEY_ID_BYTES = 4
const PUBLIC_KEY_BYTES = 32
/** At least sixteen must be supported; no real checkpoint has more than this. */
const MAX_SIGNATURES = 64
const KEY_NAME = /^[^\s+]+$/u
const SIGNATURE_LINE = /^— (?<name>[^\s+]+) (?<value>[A-Za-z0-9+/]+={0,2})$/u

/** @throws TransparencyError when the text is malformed: `malformed_checkpoint` */
export function parseNote(note: string): SignedNote {
  const split = note.lastIndexOf('\n\n')
  if (split < 0 || !note.endsWith('\n') || hasControls(note)) throw malformed('is no signed note')
  const lines = note.slice(split + 2, -1).split('\n')
  if (lines.length > MAX_SIGNATURES) throw malformed('has too many signatures')
  return { text: note.slice(0, split + 1), signatures: lines.map(parseSignatureLine) }
}

/** Formats a note as text. */
export function formatNote({ text, signatures }: SignedNote): string {
  return `${text}\n${signatures.map((signature) => `${formatSignatureLine(signature)}\n`).join('')}`
}

export function formatSignatureLine({ name, keyId, signature }: NoteSignature): string {
  return `— ${name} ${toBase64(concatBytes(keyId, signature))}`
}

/** @throws TransparencyError when the text is malformed: `malformed_checkpoint` */
export function parseSignatureLine(line: string): NoteSignature {
  const { name, value } = SIGNATURE_LINE.exec(line)?.groups ?? {}
  if (name === undefined || value === undefined) throw malformed('has a line that is no signature')
  const bytes = decodeBase64(value, () => malformed('has a signature that is not base64'))
  if (bytes.length <= KEY_ID_BYTES) throw malformed('has a signature that is too short')
  return { name, keyId: bytes.slice(0, KEY_ID_BYTES), signature: bytes.slice(KEY_ID_BYTES) }
}

/** Makes a key from its parts; its id is derived from them. */
export function noteKey(name: string, type: NoteKeyType, publicKey: Bytes): NoteKey {
  if (!KEY_NAME.test(name)) throw malformedKey('the name of a key has no spaces and no plus sign')
  const tagged = concatBytes(utf8(`${name}\n`), Uint8Array.of(TYPE_BYTE[type]), publicKey)
  return { name, type, publicKey, keyId: new Uint8Array(sha256(tagged)).slice(0, KEY_ID_BYTES) }
}

/**
 * Reads a verifier key, `<name>+<hex key id>+<base64 of type and key>`.
 * @throws TransparencyError when the key is malformed: `malformed_key`
 */
export function parseNoteKey(text: string): NoteKey {
  const [name = '', id = '', encoded = '', ...rest] = splitKey(text)
  const bytes = decodeBase64(encoded, () => malformedKey('a key is not base64'))
  const type = TYPES.find((candidate) => TYPE_BYTE[candidate] === bytes[0])
  if (rest.length > 0 || type === undefined || bytes.length !== 1 + PUBLIC_KEY_BYTES) {
    throw malformedKey('a key is no Ed25519 key of a log or a witness')
  }
  const key = noteKey(name, type, bytes.slice(1))
  if (toHex(key.keyId) !== id)
    throw malformedKey('the id of a key is not that of its name and bytes')
  return key
}

export function formatNoteKey({ name, type, keyId, publicKey }: NoteKey): string {
  const encoded = toBase64(concatBytes(Uint8Array.of(TYPE_BYTE[type]), publicKey))
  return `${name}+${toHex(keyId)}+${encoded}`
}

/** The signatures of a note that claim to be of this key. */
export function signaturesOf(note: SignedNote, key: NoteKey): readonly NoteSignature[] {
  return note.signatures.filter(
    ({ name, keyId }) => name === key.name && equalBytes(keyId, key.keyId),
  )
}

/** Whether the key has signed these bytes (RFC 8032, strict). */
export function isSignedBy(key: NoteKey, signature: Bytes, message: Bytes): boolean {
  try {
    return ed25519.verify(signature, message, key.publicKey, { zip215: false })
  } catch {
    return false
  }
}

const TYPES: readonly NoteKeyType[] = ['ed25519', 'cosignature']

/** Splits at the first two plus signs: the base64 part may contain more, a name must not. */
function splitKey(text: string): string[] {
  const [name = '', id = '', ...rest] = text.trim().split('+')
  return [name, id, rest.join('+')]
}

function hasControls(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- the specification forbids just these
  return /[\u0000-\u0009\u000B-\u001F]/.test(text)
}

function decodeBase64(text: string, fault: () => TransparencyError): Bytes {
  try {
    return fromBase64(text)
  } catch {
    throw fault()
  }
}

function malformed(what: string): TransparencyError {
  return new TransparencyError('malformed_checkpoint', `the checkpoint ${what}`)
}

function malformedKey(message: string): TransparencyError {
  return new TransparencyError('malformed_key', message)
}
