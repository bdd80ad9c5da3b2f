import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A body on its way to the worker, piece by piece. */
export interface WorkerBody {
  /** Whether no more can be sent, because the body or the connection has ended. */
  readonly destroyed: boolean
  /** Whether it was ended, and the kernel has all of it. */
  readonly writableFinished: boolean
  /**
   * Sends a piece.
   * @returns false where no more should be sent before `drain`
   */
  write(bytes: Uint8Array): boolean
  /** Ends the body as a whole one. */
  end(): unknown
  on(event: 'drain' | 'error', listener: () => void): unknown
  /** `close`: the worker has all of it, or takes no more. */
  once(event: 'close', listener: () => void): unknown
}

const NEW_LINE = '\r\n'

/** More than the size line and the line end of any chunk take. */
const FRAMING_BYTES = 20

/**
 * The body of a response in chunks (RFC 9112 section 7.1), of which Node sends the head and the end. Node writes each chunk
 * in four steps, which cost a tenth of what the daemon does for a frame of a stream; here it is one write. Nothing else may
 * write to the response.
 * @param response its head was sent
 */
export function chunkedBody(response: ServerResponse): WorkerBody {
  const { socket } = response
  // Only a response to HTTP/1.0 has no chunks; one without a connection is closed, or about to be.
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
    // The connection serves other calls after this one.
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

/** Bytes, not none, as one chunk: no bytes would end the body. */
function inChunk(bytes: Uint8Array): Buffer {
  const chunk = Buffer.allocUnsafe(bytes.length + FRAMING_BYTES)
  let at = chunk.write(`${bytes.length.toString(16)}${NEW_LINE}`, 'latin1')
  chunk.set(bytes, at)
  at += bytes.length
  at += chunk.write(NEW_LINE, at, 'latin1')
  return chunk.subarray(0, at)
}
