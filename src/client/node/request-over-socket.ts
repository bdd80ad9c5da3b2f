import http from 'node:http'
import { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { concatBytes } from '../../protocol/bytes.ts'
import type { HostAnswer } from '../proof.ts'
import { readRetryAfter } from '../prove-again.ts'

/** An envelope takes some tens of kilobytes; a much larger answer is an attack. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

/** The platform may take a minute to capture a report. */
const RESPONSE_TIMEOUT_MS = 70_000

/**
 * Sends one GET over a connection that stays open and stays the caller's, so that later requests on it go to the same
 * peer.
 */
export async function requestOverSocket(
  socket: TLSSocket,
  host: string,
  path: string,
): Promise<HostAnswer> {
  const borrowed = borrow(socket)
  try {
    return await get(borrowed.stream, host, path)
  } finally {
    borrowed.release()
  }
}

/**
 * A stream over the socket that can end without ending the socket. It reads with `readable` events like the HTTP client
 * that uses the socket after it: a socket that was paused in between never reads again under Deno.
 */
function borrow(socket: TLSSocket): { stream: Duplex; release: () => void } {
  const pass = () => {
    for (let chunk = read(socket); chunk !== null; chunk = read(socket)) {
      if (!stream.push(chunk)) return
    }
  }
  const stream = new Duplex({
    read: pass,
    write: (chunk, _encoding, done) => void socket.write(chunk, (error) => done(error)),
  })
  const onEnd = () => stream.push(null)
  const onError = (error: Error) => stream.destroy(error)
  const onClose = () => stream.destroy(new Error('the connection was closed'))
  socket.on('readable', pass).on('end', onEnd).on('error', onError).on('close', onClose)
  return {
    stream,
    release: () => {
      socket.off('readable', pass).off('end', onEnd).off('error', onError).off('close', onClose)
      stream.on('error', () => {}).destroy()
    },
  }
}

function read(socket: TLSSocket): Buffer | null {
  const chunk: Buffer | null = socket.read()
  return chunk
}

function get(stream: Duplex, host: string, path: string): Promise<HostAnswer> {
  return new Promise((resolve, reject) => {
    const request = http.get(
      {
        createConnection: () => stream,
        path,
        headers: { host, connection: 'keep-alive', accept: 'application/json' },
        signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
      },
      (response) => {
        const { statusCode: status = 0, headers } = response
        const more = readRetryAfter(headers['retry-after'])
        readBody(response).then((body) => resolve({ status, body, ...more }), reject)
      },
    )
    request.on('error', reject)
  })
}

async function readBody(response: http.IncomingMessage) {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of response) {
    const bytes: Buffer = part
    size += bytes.length
    if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too large')
    parts.push(bytes)
  }
  return concatBytes(...parts)
}
