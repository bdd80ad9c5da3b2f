import { LINK_PATHS, type LinkConfig, type LinkState } from '../../protocol/link.ts'
import { parseEgressTarget, type Egress } from '../open-egress.ts'
import type { EnvelopeCache } from '../envelope/envelope-cache.ts'
import type { Generation } from '../config/generations.ts'
import type { ProviderProofs } from '../proofs.ts'
import type { Release } from '../release/release.ts'
import { createReceiptSigner, type SignerTools } from '../sign/receipt-signer.ts'
import { jsonAnswer, jsonTextAnswer, readJson, type LinkAnswer } from './answer.ts'
import type { LinkCall, LinkRoute } from './dispatch.ts'
import { LinkError } from '../link-error.ts'

/** What the link's paths read and ask. */
export interface LinkSubject {
  readonly adminToken: string
  readonly signer: SignerTools
  readonly envelopes: EnvelopeCache
  readonly proofs: ProviderProofs
  readonly egress: Egress
  readonly generation: () => Generation
  readonly release: () => Release
}

const MAX_SIGN_BYTES = 1_048_576

/** Every path of the link (src/protocol/link.ts). */
export function createLinkRoutes(subject: LinkSubject): readonly LinkRoute[] {
  const { envelopes, proofs } = subject
  const signReceipts = createReceiptSigner(subject.signer)
  return [
    get(LINK_PATHS.state, async () => jsonAnswer(describeState(subject))),
    get(LINK_PATHS.config, async () => jsonAnswer(describeConfig(subject))),
    {
      method: 'POST',
      path: LINK_PATHS.sign,
      handle: async ({ request }) =>
        jsonTextAnswer(await signReceipts(await readJson(request, MAX_SIGN_BYTES))),
    },
    get(LINK_PATHS.attestation, ({ url }) => answerAttestation(envelopes, url)),
    get(LINK_PATHS.trust, async () => jsonAnswer(describeTrust(subject))),
    get(LINK_PATHS.providers, async () => jsonAnswer({ providers: proofs.list() })),
    {
      method: 'GET',
      path: LINK_PATHS.evidence,
      below: true,
      handle: async ({ rest }) => answerEvidence(subject, rest.slice(1)),
    },
    {
      method: 'any',
      path: LINK_PATHS.egress,
      below: true,
      async handle({ request, url, rest }, response) {
        const target = parseEgressTarget(rest, url.search)
        await subject.egress.carry({ ...target, request, response })
        return undefined
      },
    },
  ]
}

function get(path: string, handle: (call: LinkCall) => Promise<LinkAnswer>): LinkRoute {
  return { method: 'GET', path, handle }
}

/** The published trust bundle. */
function describeTrust({ release }: LinkSubject): object {
  const { bundleJws, logProofs } = release()
  return { trust_bundle_jws: bundleJws, ...(logProofs !== undefined && { log_proofs: logProofs }) }
}

function describeState({ generation, signer, envelopes }: LinkSubject): LinkState {
  return {
    generation: generation().generation,
    kid: signer.key.kid,
    jwk: signer.key.jwk,
    envelope_sha256: envelopes.current?.sha256 ?? null,
  }
}

function describeConfig({ adminToken, generation }: LinkSubject): LinkConfig {
  const { generation: number, config, sha256, providerApiKeys } = generation()
  return {
    generation: number,
    config,
    configuration_sha256: sha256,
    secrets: { admin_token: adminToken, provider_api_keys: { ...providerApiKeys } },
  }
}

const NONCE = /^[0-9a-f]{64}$/

async function answerAttestation(envelopes: EnvelopeCache, url: URL): Promise<LinkAnswer> {
  const nonces = url.searchParams.getAll('nonce')
  const [nonce] = nonces
  if (nonce === undefined) return jsonTextAnswer((await envelopes.get()).json)
  if (nonces.length > 1 || !NONCE.test(nonce)) {
    throw new LinkError('invalid_request', 'a nonce is 64 lowercase hex digits')
  }
  const [source = ''] = url.searchParams.getAll('source')
  return jsonTextAnswer((await envelopes.fresh(nonce, source)).json)
}

function answerEvidence({ envelopes, proofs }: LinkSubject, sha256: string): LinkAnswer {
  const bytes = envelopes.find(sha256) ?? proofs.evidence(sha256)
  if (bytes === undefined) throw new LinkError('not_found', 'no such evidence')
  return { contentType: 'application/octet-stream', body: bytes }
}
