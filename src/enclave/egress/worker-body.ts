import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A body on its way to the worker, piece by piece. */
export interface WorkerBody {
  /** Whether no more can be sent, because the body or the connection has ended. */
  readonly destroyed: boolean
  /** Whether the body was ended and all of it was handed to the kernel. */
  readonly writableFinished: boolean
  /**
   * Sends a piece.
   * @returns false where no more should be sent before `drain`
   */
  write(bytes: Uint8Array): boolean
  /** Ends the body as a complete one. */
  end(): unknown
  on(event: 'drain' | 'error', listener: () => void): unknown
  /** `close`: all of the body was sent, or the worker takes no more of it. */
  once(event: 'close', listener: () => void): unknown
}

const NEW_LINE = '\r\n'

/** More bytes than the size line and the line end of any chunk need. */
const FRAMING_BYTES = 20

/**
 * Writes the body of a response with chunked coding (RFC 9112 section 7.1); Node sends the head and the end. Node would
 * write each chunk in four steps, which cost a tenth of the daemon's work for a frame of a stream; this takes one
 * write. Nothing else may write to the response.
 * @param response its head was sent
 */
export function chunkedBody(response: ServerResponse): WorkerBody {
  const { socket } = response
  // Only a response to HTTP/1.0 is not chunked; one without a socket is closed, or about to be.
  return response.chunkedEncoding && socket !== null ? new ChunkedBody(response, socket) : response
}

class ChunkedBody implements WorkerBody {
  readonly #response: ServerResponse
  readonly #socket: Socket
  readonly #onDrain: (() => void)[] = []

  constructor(response: ServerResponse, socket: Socket) {
    this.#response = response
    this.#socket = socket
    const drained = () => {
      for (const listener of this.#onDrain) listener()
    }
    socket.on('drain', drained)
    // The connection serves other calls later.
    response.once('close', () => socket.off('drain', drained))
  }

  get destroyed(): boolean {
    return this.#response.destroyed || this.#socket.destroyed
  }

  get writableFinished(): boolean {
    return this.#response.writableFinished
  }

  write(bytes: Uint8Array): boolean {
    return this.#socket.write(inChunk(bytes))
  }

  end(): void {
    this.#response.end()
  }

  on(event: 'drain' | 'error', listener: () => void): void {
    if (event === 'drain') this.#onDrain.push(listener)
    else this.#response.on(event, listener)
  }

  once(event: 'close', listener: () => void): void {
    this.#response.once(event, listener)
  }
}

/** Frames bytes as one chunk. There must be at least one byte: an empty chunk would end the body. */
function inChunk(bytes: Uint8Array): Buffer {
  const chunk = Buffer.allocUnsafe(bytes.length + FRAMING_BYTES)
  let at = chunk.write(`${bytes.length.toString(16)}${NEW_LINE}`, 'latin1')
  chunk.set(bytes, at)
  at += bytes.length
  at += chunk.write(NEW_LINE, at, 'latin1')
  return chunk.subarray(0, at)
}
