import { utf8 } from '../../protocol/bytes.ts'
import type { JsonCursor, Range } from '../json/scan.ts'
import type { MediaKind } from '../provider/chat-request.ts'

/** The content of one part, as far as the cost depends on it. */
export interface ContentPart {
  /** UTF-8 bytes of its text once decoded. */
  readonly textBytes: number
  /** Undefined for text. */
  readonly media: MediaKind | undefined
  /** Bytes of an inline image or video, and of inline audio, as written. */
  readonly pictureBytes: number
  readonly audioBytes: number
}

/** Content parts whose text counts as text. */
const TEXT_PARTS: ReadonlySet<string> = new Set(['text', 'refusal', 'thinking'])

/**
 * Types of parts whose medium is in the member of the same name. `payload` names the member that holds it: `data` is plain
 * base64, `url` may be a data URL.
 */
const MEDIA_PARTS: ReadonlyMap<string, { readonly kind: MediaKind; readonly payload: string }> =
  new Map([
    ['image_url', { kind: 'image', payload: 'url' }],
    ['video_url', { kind: 'video', payload: 'url' }],
    ['audio_url', { kind: 'audio', payload: 'url' }],
    ['input_audio', { kind: 'audio', payload: 'data' }],
  ])

/**
 * Scans one part of a message's content. A part of unknown type counts as a file. A medium counts only in the member
 * that its type names, so that text cannot pass for an image.
 */
export function scanPart(cursor: JsonCursor, bytes: Uint8Array): ContentPart {
  let type = ''
  let textBytes = 0
  const inline = new Map<string, number>()
  cursor.object((name) => {
    const medium = MEDIA_PARTS.get(name)
    if (medium !== undefined) inline.set(name, inlineBytes(cursor, bytes, medium.payload))
    else if (cursor.peek() !== 'string') return
    else if (name === 'type') type = cursor.string()
    else if (TEXT_PARTS.has(name)) textBytes += cursor.textBytes()
  })
  if (TEXT_PARTS.has(type)) return { textBytes, media: undefined, pictureBytes: 0, audioBytes: 0 }
  const media = MEDIA_PARTS.get(type)?.kind ?? 'file'
  const length = inline.get(type) ?? 0
  const isAudio = media === 'audio'
  return {
    textBytes,
    media,
    pictureBytes: isAudio ? 0 : length,
    audioBytes: isAudio ? length : 0,
  }
}

/** Length of the inline medium in the next value, bytes as written; 0 where it is remote. */
function inlineBytes(cursor: JsonCursor, bytes: Uint8Array, payload: string): number {
  let length = 0
  const take = () => {
    const range = cursor.skip()
    if (payload === 'data' || isDataUrl(bytes, range)) length = range.end - range.start
  }
  const kind = cursor.peek()
  if (kind === 'string') take()
  if (kind === 'object') {
    cursor.object((name) => {
      if (name === payload && cursor.peek() === 'string') take()
    })
  }
  return length
}

const DATA_URL = utf8('"data:')

/** Whether a string, as written, begins with `data:` in lower case, as all clients write it. */
function isDataUrl(bytes: Uint8Array, { start }: Range): boolean {
  return DATA_URL.every((byte, index) => bytes[start + index] === byte)
}
