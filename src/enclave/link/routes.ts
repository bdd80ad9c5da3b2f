import { fromHex, toBase64, toHex } from '../../protocol/bytes.ts'
import {
  decapsulateRequestSchema,
  LINK_PATHS,
  type DecapsulateAnswer,
  type LinkConfig,
} from '../../protocol/link.ts'
import { telemetryReportSchema } from '../../protocol/telemetry.ts'
import { MAX_UNSEAL_BYTES } from '../../protocol/unseal.ts'
import type { EnvelopeCache } from '../envelope/envelope-cache.ts'
import type { Generation } from '../config/generations.ts'
import type { ProviderProofs } from '../proofs.ts'
import type { HpkeKeyring } from '../hpke/hpke-keyring.ts'
import type { KeyRotation } from '../hpke/key-rotation.ts'
import type { Release } from '../release/release.ts'
import type { Unsealing } from '../sealed/open-gate.ts'
import type { LinkAnswer } from '../link-server/reply.ts'
import { jsonAnswer, jsonTextAnswer, readJson, readText } from './answer.ts'
import type { AnswerRoute, LinkCall } from './dispatch.ts'
import { LinkError } from '../link-error.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

/** The keys to which request bodies are encrypted, and their rotation. */
export interface Hpke {
  readonly keyring: HpkeKeyring
  readonly rotation: KeyRotation
}

/** The dependencies of the link's routes. */
export interface LinkSubject {
  readonly unsealing: Unsealing
  readonly envelopes: EnvelopeCache
  readonly hpke: Hpke
  readonly proofs: ProviderProofs
  readonly telemetry: Pick<Telemetry, 'exchange'>
  readonly generation: () => Generation
  readonly release: () => Release
}

/** The longest body of any of these routes. */
export const MAX_TELEMETRY_BYTES = 8 * 1_048_576
const MAX_DECAPSULATE_BYTES = 1_024

/** The routes (src/protocol/link.ts) whose state is in the main thread only, however many threads carry requests. */
export function createLinkRoutes(subject: LinkSubject): readonly AnswerRoute[] {
  const { proofs } = subject
  return [
    get(LINK_PATHS.config, async () => jsonAnswer(describeConfig(subject))),
    get(LINK_PATHS.attestation, ({ url }) => answerAttestation(subject, url)),
    get(LINK_PATHS.trust, async () => jsonAnswer(describeTrust(subject))),
    get(LINK_PATHS.hpke, async () =>
      jsonAnswer({ key_config_b64: toBase64(subject.hpke.keyring.current.config) }),
    ),
    {
      method: 'POST',
      path: LINK_PATHS.hpke,
      handle: async ({ body }) =>
        jsonAnswer(await decapsulate(subject, await readJson(body, MAX_DECAPSULATE_BYTES))),
    },
    get(LINK_PATHS.unseal, async () => jsonAnswer({ refused: subject.unsealing.gate.refused })),
    {
      method: 'POST',
      path: LINK_PATHS.unseal,
      handle: async ({ body }) => {
        const document = await readText(body, MAX_UNSEAL_BYTES)
        return jsonAnswer(await subject.unsealing.gate.accept(document.trim()))
      },
    },
    {
      method: 'POST',
      path: LINK_PATHS.telemetry,
      handle: async ({ body }) => {
        const report = telemetryReportSchema.safeParse(await readJson(body, MAX_TELEMETRY_BYTES))
        if (!report.success) throw new LinkError('invalid_request', 'not a telemetry report')
        return jsonAnswer(subject.telemetry.exchange(report.data))
      },
    },
    get(LINK_PATHS.providers, async () => jsonAnswer({ providers: proofs.list() })),
    {
      method: 'GET',
      path: LINK_PATHS.evidence,
      below: true,
      handle: async ({ rest }) => answerEvidence(subject, rest.slice(1)),
    },
  ]
}

function get(path: string, handle: (call: LinkCall) => Promise<LinkAnswer>): AnswerRoute {
  return { method: 'GET', path, handle }
}

/** @throws LinkError when the call cannot be served */
async function decapsulate(
  { hpke: { keyring, rotation } }: LinkSubject,
  body: unknown,
): Promise<DecapsulateAnswer> {
  const asked = decapsulateRequestSchema.safeParse(body)
  if (!asked.success) throw new LinkError('invalid_request', 'not 32 bytes of an encapsulated key')
  const { enc, owner } = asked.data
  try {
    const secrets = await keyring.decapsulate(fromHex(enc), owner)
    return { shared_secrets: secrets.map(toHex) }
  } finally {
    // After a refusal, too: the key of an owner that has used its share may become replaceable only later.
    rotation.used()
  }
}

/** The published trust bundle. */
function describeTrust({ release }: LinkSubject): object {
  const { bundleJws, logProofs } = release()
  return { trust_bundle_jws: bundleJws, ...(logProofs !== undefined && { log_proofs: logProofs }) }
}

function describeConfig({ generation }: LinkSubject): LinkConfig {
  const { generation: number, config, sha256, ...secrets } = generation()
  const { providerApiKeys, webhookSecrets, adminToken } = secrets
  if (adminToken === null) {
    throw new LinkError('sealed', 'the router has not been given its secrets yet')
  }
  return {
    generation: number,
    config,
    configuration_sha256: sha256,
    secrets: {
      admin_token: adminToken,
      provider_api_keys: { ...providerApiKeys },
      webhook_secrets: { ...webhookSecrets },
    },
  }
}

const NONCE = /^[0-9a-f]{64}$/

async function answerAttestation(
  { envelopes, unsealing }: LinkSubject,
  url: URL,
): Promise<LinkAnswer> {
  const nonces = url.searchParams.getAll('nonce')
  const [nonce] = nonces
  if (nonce === undefined) return jsonTextAnswer((await envelopes.get()).json)
  if (nonces.length > 1 || !NONCE.test(nonce)) {
    throw new LinkError('invalid_request', 'a nonce is 64 lowercase hex digits')
  }
  const [source = ''] = url.searchParams.getAll('source')
  const { json } = await envelopes.fresh(nonce, source)
  unsealing.nonces.remember(nonce)
  return jsonTextAnswer(json)
}

function answerEvidence({ envelopes, proofs }: LinkSubject, sha256: string): LinkAnswer {
  const bytes = envelopes.find(sha256) ?? proofs.evidence(sha256)
  if (bytes === undefined) throw new LinkError('not_found', 'no such evidence')
  return { contentType: 'application/octet-stream', body: bytes }
}
