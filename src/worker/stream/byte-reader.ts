import type { Bytes } from '../../protocol/bytes.ts'

/**
 * Buffer size of the first read of a body, bytes. Every open stream has such a buffer, and most only ever read small events.
 */
const FIRST_BUFFER_BYTES = 1024

/** Maximum buffer size of a read, bytes. */
const MAX_BUFFER_BYTES = 8 * 1024

/** Reads a body piece by piece. */
export interface ByteReader {
  /** @param used the bytes of the previous read, whose memory is reused */
  read(used: Bytes | undefined): Promise<Read>
}

type Read =
  | { readonly done: false; readonly value: Bytes }
  | { readonly done: true; readonly value?: Bytes | undefined }

/**
 * Reads a body into reused memory, where its stream supports that, as workerd's do: a read that allocates its own buffer
 * costs 4 us more and leaves 4 KiB of garbage.
 */
export function openByteReader(body: ReadableStream<Bytes>): ByteReader {
  const reader = bufferReader(body)
  if (reader === undefined) return body.getReader()
  return { read: (used) => reader.read(new Uint8Array(memoryAfter(used))) }
}

/** The memory of the previous read; twice as much where that read filled its buffer. */
function memoryAfter(used: Bytes | undefined): ArrayBuffer {
  if (used === undefined) return new ArrayBuffer(FIRST_BUFFER_BYTES)
  const { byteLength } = used.buffer
  const isEnough = used.length < byteLength || byteLength >= MAX_BUFFER_BYTES
  return isEnough ? used.buffer : new ArrayBuffer(2 * byteLength)
}

/** Undefined where the stream is not a byte stream. */
function bufferReader(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | undefined {
  try {
    return body.getReader({ mode: 'byob' })
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}
