import type { IncomingMessage } from 'node:http'
import { LinkError } from './link-error.ts'

/**
 * Reads a body of at most `maxBytes`.
 * @throws LinkError `request_too_large` when the body is larger
 */
export type BodyReader = (maxBytes: number) => Promise<Buffer>

/** A body that was read already. */
export function bodyReader(body: Uint8Array): BodyReader {
  return async (maxBytes) => {
    if (body.length > maxBytes) throw tooLarge(maxBytes)
    return Buffer.from(body.buffer, body.byteOffset, body.length)
  }
}

function tooLarge(maxBytes: number): LinkError {
  return new LinkError('request_too_large', `the body is over ${maxBytes} bytes`)
}

/**
 * Reads a body of at most `maxBytes`. Uses events, because iterating over a request costs as much as signing a receipt.
 * @throws LinkError `request_too_large` when the body is larger
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const take = (chunk: Buffer): void => {
      size += chunk.length
      chunks.push(chunk)
      if (size <= maxBytes) return
      // The rest of the body is discarded, so that the worker can read the refusal.
      request.off('data', take).off('end', finish).resume()
      reject(tooLarge(maxBytes))
    }
    const finish = (): void => resolve(Buffer.concat(chunks, size))
    request.on('data', take).on('end', finish).on('error', reject)
  })
}
