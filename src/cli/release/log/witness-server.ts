import { createServer, type IncomingMessage, type Server } from 'node:http'
import { messageOfThrown } from '../../../protocol/thrown-message.ts'
import { printError } from '../../failure.ts'
import type { ListenAddress } from '../../../host/stack/listen-address.ts'
import type { LogWitness, WitnessAnswer } from './witness.ts'

/** Far above the size of a checkpoint with its signatures and at most 63 hashes. */
const MAX_BODY_BYTES = 65_536

/**
 * Serves `POST /add-checkpoint`; resolves once it listens. What keeps it from cosigning, such as a full disk, is printed
 * on standard error.
 */
export async function serveWitness(
  witness: LogWitness,
  { host, port }: ListenAddress,
): Promise<Server> {
  const server = createServer(
    { requestTimeout: 10_000, headersTimeout: 5_000 },
    (request, response) => {
      answer(witness, request).then(
        ({ status, type, body }) => response.writeHead(status, { 'content-type': type }).end(body),
        () => response.writeHead(500).end(),
      )
    },
  )
  server.maxConnections = 256
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return server
}

async function answer(witness: LogWitness, request: IncomingMessage): Promise<WitnessAnswer> {
  const path = new URL(request.url ?? '/', 'http://witness').pathname
  if (path !== '/add-checkpoint') return refusal(404)
  if (request.method !== 'POST') return refusal(405)
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BODY_BYTES) return refusal(413)
    chunks.push(chunk)
  }
  return witness.addCheckpoint(Buffer.concat(chunks).toString('utf8')).catch((error: unknown) => {
    printError(messageOfThrown(error))
    return refusal(500)
  })
}

function refusal(status: number): WitnessAnswer {
  return { status, type: 'text/plain; charset=utf-8', body: '' }
}
