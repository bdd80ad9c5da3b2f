import { createServer as createPlainServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { z } from 'zod'
import { obtainSimulatedChain } from '../../src/enclave/snp/simulated-source.ts'
import { simulatedChipSchema } from '../../src/protocol/boot.ts'
import { openEnvelopeHost, type EnvelopeHost } from '../../src/standin/attested-envelope.ts'
import { openStandinIdentity } from '../../src/standin/attested-identity.ts'
import {
  behaviourOf,
  DELTA_FRAME,
  longLineStart,
  OTHER_ANSWERS,
  STREAM_END,
  STREAM_START,
  WHOLE_ANSWER,
} from './mock-answers.ts'
import { Pacer, type PacedStream } from './pacer.ts'
import { RequestReader, type RawRequest } from './request-reader.ts'

/**
 * The mock provider, in a process of its own, on loopback: raw sockets and prepared bytes. It sends its plain and its
 * TLS port to its parent. Once it has received a simulated chip, it has evidence for its TLS key.
 */
const identity = await openStandinIdentity(undefined, new Date())
const pacer = new Pacer()
let host: EnvelopeHost | undefined

const chipSchema = z.object({ chip: simulatedChipSchema })

process.on('message', (received) => {
  const message = chipSchema.safeParse(received)
  if (message.success) void attest(message.data.chip)
})
process.on('disconnect', () => process.exit(0))

const { certPem: cert, keyPem: key, spkiSha256: tlsSpkiSha256 } = identity.tls
const port = await listen(createPlainServer({ noDelay: true }, serve))
const tlsPort = await listen(createTlsServer({ cert, key, noDelay: true }, serve))
process.send?.({ port, tlsPort, rootJwk: identity.root.publicJwk })

async function attest(chip: z.output<typeof simulatedChipSchema>): Promise<void> {
  const chain = await obtainSimulatedChain(chip, Date.now())
  host = await openEnvelopeHost({ root: identity.root, chain, tlsSpkiSha256, now: Date.now })
}

function serve(socket: Socket): void {
  const reader = new RequestReader()
  socket.on('error', () => {})
  socket.on('data', (bytes: Buffer) => {
    const request = reader.push(bytes)
    if (request === undefined) return
    const other = OTHER_ANSWERS.get(request.target.replace(/^\/v1/, ''))
    if (request.target.endsWith('/chat/completions')) complete(request, socket)
    else if (other !== undefined) socket.write(other)
    else void publish(request.target, socket)
  })
}

function complete({ body }: RawRequest, socket: Socket): void {
  const behaviour = behaviourOf(body)
  if (behaviour.kind === 'whole') socket.write(WHOLE_ANSWER)
  else if (behaviour.kind === 'line') {
    socket.write(longLineStart(behaviour.kibibytes))
    socket.write(STREAM_END)
  } else if (behaviour.everyMs === 0) {
    const rest = Array.from({ length: behaviour.frames - 1 }, () => DELTA_FRAME)
    socket.write(Buffer.concat([STREAM_START, ...rest, STREAM_END]))
  } else pace(behaviour, socket)
}

function pace({ frames, everyMs }: { frames: number; everyMs: number }, socket: Socket): void {
  socket.write(STREAM_START)
  const stream: PacedStream = {
    everyMs,
    left: frames - 1,
    dueAt: performance.now() + everyMs,
    frame: () => void socket.write(DELTA_FRAME),
    end: () => {
      socket.off('close', gone)
      socket.write(STREAM_END)
    },
  }
  const gone = () => pacer.drop(stream)
  socket.once('close', gone)
  pacer.add(stream)
}

/** Serves the documents of a host of `service.attestation/v1`. */
async function publish(target: string, socket: Socket): Promise<void> {
  const url = new URL(target, 'https://mock')
  const nonce = url.searchParams.get('nonce') ?? ''
  const body = url.pathname === '/attestation' ? await host?.envelope(nonce) : host && host.trust
  const status = body === undefined ? '503 Service Unavailable' : '200 OK'
  const length = Buffer.byteLength(body ?? '')
  socket.write(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body ?? ''}`,
  )
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}
