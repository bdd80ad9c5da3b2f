import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { CHIP_FILE_VARIABLE } from '../../src/enclave/open-machine.ts'
import { obtainSimulatedChain } from '../../src/enclave/snp/simulated-source.ts'
import { simulatedChipSchema } from '../../src/protocol/boot.ts'
import { openEnvelopeHost, type EnvelopeHost } from '../../src/standin/attested-envelope.ts'
import { openStandinIdentity } from '../../src/standin/attested-identity.ts'
import { listen } from './listen.ts'

/** TLS in front of a provider, with evidence for its key. */
export interface PinnedFront {
  readonly port: number
  readonly rootJwk: object
  close(): Promise<void>
}

/**
 * Starts a guest on the simulated platform of the test run, in front of a provider that speaks over the bare socket. It
 * publishes its evidence; everything else it passes on as it comes, an end as an end and a reset as a reset.
 */
export async function startPinnedFront(providerPort: number): Promise<PinnedFront> {
  const identity = await openStandinIdentity(undefined, new Date())
  const { certPem: cert, keyPem: key, spkiSha256: tlsSpkiSha256 } = identity.tls
  const chip = simulatedChipSchema.parse(
    JSON.parse(readFileSync(process.env[CHIP_FILE_VARIABLE] ?? '', 'utf8')),
  )
  const chain = await obtainSimulatedChain(chip, Date.now())
  const host = await openEnvelopeHost({ root: identity.root, chain, tlsSpkiSha256, now: Date.now })
  const open = new Set<Socket>()
  const server = createServer({ noDelay: true }, (raw) => {
    open.add(raw)
    raw.once('close', () => open.delete(raw))
    raw.on('error', () => {})
    const secure = new TLSSocket(raw, { isServer: true, cert, key })
    secure.on('error', () => raw.destroy())
    secure.once('data', (first: Buffer) => {
      if (first.toString('latin1', 0, 4) === 'GET ') {
        void publish(host, first, secure)
      } else {
        secure.pause()
        relay(first, { raw, secure, provider: connect({ port: providerPort, host: '127.0.0.1' }) })
      }
    })
  })
  const port = await listen(server)
  return {
    port,
    rootJwk: identity.root.publicJwk,
    close: async () => {
      for (const raw of open) raw.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Relayed {
  readonly raw: Socket
  readonly secure: TLSSocket
  readonly provider: Socket
}

function relay(first: Buffer, { raw, secure, provider }: Relayed): void {
  provider.setNoDelay(true)
  provider.on('error', () => raw.resetAndDestroy())
  raw.once('close', () => provider.destroy())
  provider.write(first)
  secure.pipe(provider)
  provider.pipe(secure)
}

async function publish(host: EnvelopeHost, head: Buffer, secure: TLSSocket): Promise<void> {
  const url = new URL(head.toString('latin1').split(' ')[1] ?? '/', 'https://provider')
  const nonce = url.searchParams.get('nonce') ?? ''
  const body = url.pathname.endsWith('/attestation') ? await host.envelope(nonce) : host.trust
  const length = Buffer.byteLength(body)
  const type = 'content-type: application/json\r\nconnection: close'
  secure.end(`HTTP/1.1 200 OK\r\n${type}\r\ncontent-length: ${length}\r\n\r\n${body}`)
}
