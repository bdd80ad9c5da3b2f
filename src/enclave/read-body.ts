import type { IncomingMessage } from 'node:http'
import { LinkError } from './link-error.ts'

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
      reject(new LinkError('request_too_large', `the body is over ${maxBytes} bytes`))
    }
    const finish = (): void => resolve(Buffer.concat(chunks, size))
    request.on('data', take).on('end', finish).on('error', reject)
  })
}
