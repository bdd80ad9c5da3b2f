import type { RequestListener, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { SimulatedChain } from '../enclave/simulated/chain.ts'
import { openEnvelopeHost, type EnvelopeHost } from './attested-envelope.ts'
import type { StandinIdentity } from './attested-identity.ts'
import { tinfoilV2, tinfoilV3 } from './attested-tinfoil.ts'

/** The stand-in behind HTTPS. It has evidence for its TLS key once it has received its simulated chip. */
export interface AttestedFront {
  readonly server: Server
  attest(chain: SimulatedChain, now: () => number): Promise<void>
}

interface Evidence {
  readonly host: EnvelopeHost
  readonly chain: SimulatedChain
  readonly tlsSpkiSha256: string
}

type Answer = (evidence: Evidence, nonce: string) => Promise<string> | string

const ANSWERS: Readonly<Record<string, Answer>> = {
  '/attestation': ({ host }, nonce) => host.envelope(nonce),
  '/.well-known/trust.json': ({ host }) => host.trust,
  '/.well-known/tinfoil-attestation': (evidence, nonce) =>
    nonce === '' ? tinfoilV2(evidence) : tinfoilV3(evidence, nonce),
}

/**
 * How long requests for evidence wait for the chip. The chip comes from the daemon, which starts after the stand-in and
 * requests evidence as soon as it runs.
 */
const CHIP_WITHIN_MS = 5_000

/**
 * Passes every request to the plain front, except requests for evidence: they wait for the chip, and are answered with
 * 503 without one.
 */
export function createAttestedFront(
  { root, tls }: StandinIdentity,
  passOn: RequestListener,
): AttestedFront {
  let evidence: Evidence | undefined
  const attested = Promise.withResolvers<void>()
  const evidenceSoon = async () => {
    if (evidence === undefined) {
      await Promise.race([attested.promise, delay(CHIP_WITHIN_MS, undefined, { ref: false })])
    }
    return evidence
  }
  const server = createServer({ cert: tls.certPem, key: tls.keyPem }, (request, response) => {
    const url = new URL(request.url ?? '/', 'https://standin')
    const answer = ANSWERS[url.pathname]
    if (answer === undefined) passOn(request, response)
    else void serve(answer, evidenceSoon(), url, response)
  })
  return {
    server,
    async attest(chain, now) {
      const { spkiSha256: tlsSpkiSha256 } = tls
      const host = await openEnvelopeHost({ root, chain, tlsSpkiSha256, now })
      evidence = { host, chain, tlsSpkiSha256 }
      attested.resolve()
    },
  }
}

async function serve(
  answer: Answer,
  evidenceSoon: Promise<Evidence | undefined>,
  url: URL,
  response: ServerResponse,
): Promise<void> {
  try {
    const evidence = await evidenceSoon
    if (evidence === undefined) throw new Error('the stand-in has no simulated chip yet')
    const body = await answer(evidence, url.searchParams.get('nonce') ?? '')
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
  } catch {
    response.writeHead(503).end()
  }
}
