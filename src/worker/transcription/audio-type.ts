import { ApiError } from '../http/errors.ts'
import type { UploadedFile } from './form.ts'

/** The media types of the interface, each with the file extension that providers know it by. */
const EXTENSIONS = {
  'audio/flac': 'flac',
  'audio/m4a': 'm4a',
  'audio/mp4': 'mp4',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg',
  'audio/wav': 'wav',
  'audio/webm': 'webm',
  'audio/x-m4a': 'm4a',
} as const

/** One of the eight accepted media types. */
export type AudioType = keyof typeof EXTENSIONS

export type Container = 'flac' | 'mp4' | 'mpeg' | 'ogg' | 'wav' | 'webm'

export interface Audio {
  /** The type under which the file is sent to the provider. */
  readonly type: AudioType
  /** The container format, by the file's bytes. */
  readonly container: Container
}

/** Unspecific types, in addition to every `audio/` and `video/` type. */
const GENERIC_TYPES: ReadonlySet<string> = new Set([
  '',
  'application/mp4',
  'application/octet-stream',
  'application/ogg',
  'application/x-flac',
  'binary/octet-stream',
])

/**
 * Determines the type of a file. Its bytes must be audio, whatever its name. If the declared type is one of the eight, it is
 * accepted; for a generic type or an alias the bytes decide, and the file extension distinguishes M4A from MP4.
 * @throws ApiError `unsupported_file_type`
 */
export function audioOf({ bytes, name, type }: UploadedFile): Audio {
  const container = containerOf(bytes)
  const declared = type ?? ''
  if (container === undefined || !mayBeAudio(declared)) {
    const message = `The file is not audio of an accepted type: ${Object.keys(EXTENSIONS).join(', ')}.`
    throw new ApiError('unsupported_file_type', message, { param: 'file' })
  }
  if (isAudioType(declared)) return { type: declared, container }
  if (container === 'mp4' && /\.m4a$/i.test(name)) return { type: 'audio/m4a', container }
  return { type: `audio/${container}`, container }
}

export function extensionOf(type: AudioType): string {
  return EXTENSIONS[type]
}

function mayBeAudio(type: string): boolean {
  return GENERIC_TYPES.has(type) || /^(audio|video)\//.test(type)
}

function isAudioType(type: string): type is AudioType {
  return Object.hasOwn(EXTENSIONS, type)
}

/** How each container format begins. */
const SIGNATURES: readonly (readonly [Container, (bytes: Uint8Array) => boolean])[] = [
  ['wav', (bytes) => has(bytes, 0, 'RIFF') && has(bytes, 8, 'WAVE')],
  ['flac', (bytes) => has(bytes, 0, 'fLaC')],
  ['ogg', (bytes) => has(bytes, 0, 'OggS')],
  ['webm', (bytes) => has(bytes, 0, '\x1a\x45\xdf\xa3')],
  ['mp4', (bytes) => has(bytes, 4, 'ftyp') && !IMAGE_BRANDS.some((brand) => has(bytes, 8, brand))],
  ['mpeg', (bytes) => isId3(bytes) || isMpegFrame(bytes)],
]

/** Brands of images, which use the container of MP4 too. */
const IMAGE_BRANDS = ['avif', 'avis', 'heic', 'heix', 'hevc', 'hevx', 'mif1', 'msf1', 'crx ']

/** The container format by a file's first bytes; undefined where they are no accepted audio. */
function containerOf(bytes: Uint8Array): Container | undefined {
  return SIGNATURES.find(([, begins]) => begins(bytes))?.[0]
}

function has(bytes: Uint8Array, offset: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (bytes[offset + i] !== text.charCodeAt(i)) return false
  }
  return true
}

/** An ID3v2 tag of an existing version. */
function isId3(bytes: Uint8Array): boolean {
  const version = bytes[3] ?? 0
  return has(bytes, 0, 'ID3') && version >= 2 && version <= 4
}

/**
 * An MPEG audio frame header (ISO 11172-3) of layer II or III. Layer I is not used in practice, and the byte order
 * mark of UTF-16 text looks like it; layer 0 is AAC.
 */
function isMpegFrame(bytes: Uint8Array): boolean {
  const [sync = 0, version = 0, rates = 0] = bytes
  const layer = (version >> 1) & 3
  const synced = sync === 0xff && (version & 0xe0) === 0xe0 && ((version >> 3) & 3) !== 1
  const sound = rates >> 4 !== 0 && rates >> 4 !== 15 && ((rates >> 2) & 3) !== 3
  return synced && (layer === 1 || layer === 2) && sound
}
