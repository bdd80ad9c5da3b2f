import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import type { DaemonTls } from '../../../src/protocol/boot.ts'
import { toHex, utf8 } from '../../../src/protocol/bytes.ts'
import { createQuoteVerifier } from '../../../src/verify/tdx/quote.ts'
import { PROMPT, startAttested, type AttestedWorld } from '../../support/attested-provider.ts'
import { failuresOf, rejudge } from '../../support/rejudge.ts'
import {
  APP_COMPOSE,
  bootEvents,
  COMPOSE_HASH,
  dstackReport,
  MEASUREMENT,
  type DstackNode,
} from '../../support/synthetic-dstack.ts'
import { makeSyntheticIntel, sha256Of, type SyntheticIntel } from '../../support/synthetic-intel.ts'
import { answerAsIntel, fetchFrom, register } from '../../support/synthetic-tdx.ts'

const MODEL_COMPOSE = '{"manifest_version":2,"name":"model","docker_compose_file":"vllm"}'
const MODEL_HASH = toHex(sha256Of(utf8(MODEL_COMPOSE)))
const SIGNER = 'cd'.repeat(32)

let intel: SyntheticIntel
let tls: DaemonTls
let otherTls: DaemonTls
let world: AttestedWorld | undefined

beforeAll(async () => {
  ;[intel, tls, otherTls] = await Promise.all([
    makeSyntheticIntel(Date.now()),
    makeTlsIdentity([], new Date()),
    makeTlsIdentity([], new Date()),
  ])
})
afterEach(async () => {
  await world?.close()
  world = undefined
})

interface Change {
  readonly models?: Record<string, unknown>
  /** What the second of two nodes behind the model says of itself. */
  readonly node?: Partial<DstackNode>
  /** Changes the finished answer of a gateway. */
  readonly answer?: (answer: Record<string, unknown>) => unknown
  /** When Intel's TCB info on the nodes behind the model is due to be replaced, ms. */
  readonly nodesEnd?: number
}

const POLICY = {
  adapter: 'dstack',
  allowed_compose_hashes: [COMPOSE_HASH],
  allowed_measurements: [MEASUREMENT],
  gpu: 'optional',
  models: {
    names: ['glm'],
    allowed_compose_hashes: [MODEL_HASH],
    allowed_measurements: [MEASUREMENT],
  },
}

async function start({ models, node, answer = (same) => same, nodesEnd }: Change = {}) {
  const now = Date.now()
  const first = fetchFrom(await answerAsIntel(intel, { now }))
  const ofNodes = fetchFrom(
    await answerAsIntel(intel, { now, ...(nodesEnd !== undefined && { tcbInfoEnds: nodesEnd }) }),
  )
  // The machine of the gateway itself is asked about first, in four requests.
  let asked = 0
  const webFetch: typeof fetch = (...request) => {
    asked += 1
    return asked > 4 ? ofNodes(...request) : first(...request)
  }
  const report = (nonce: string, change: Partial<DstackNode>) =>
    dstackReport(intel, {
      nonce,
      tlsSpkiSha256: tls.spkiSha256,
      ...change,
    })
  const behind: Partial<DstackNode> = {
    address: SIGNER,
    layout: 'address',
    appCompose: MODEL_COMPOSE,
    events: bootEvents(MODEL_HASH),
    guest: { mrConfigId: new Uint8Array(48) },
  }
  world = await startAttested({
    attestation: { ...POLICY, models: { ...POLICY.models, ...models } },
    tls,
    documents: async ({ searchParams }) => {
      const nonce = searchParams.get('nonce') ?? ''
      const model = searchParams.get('model')
      const nodes = model === 'glm' ? [behind, { ...behind, ...node }] : []
      const shown = {
        gateway_attestation: await report(nonce, {}),
        model_attestations: await Promise.all(nodes.map((one) => report(nonce, one))),
      }
      return JSON.stringify(answer(shown))
    },
    deps: { webFetch, verifyQuote: createQuoteVerifier(intel.rootDer) },
  })
  return world
}

describe('a gateway of the dstack family', () => {
  it("is in force no longer than the vendor's documents on the nodes behind it", async () => {
    const nodesEnd = Math.floor(Date.now() / 1000 + 300) * 1000
    const { settled } = await start({ nodesEnd })
    expect(await settled()).toMatchObject({
      state: 'verified',
      expires_at: new Date(nodesEnd).toISOString(),
    })
  })

  it('is proven with every node it shows behind its models, and is judged again the same way', async () => {
    const { settled, link, proofs } = await start()
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
    const reply = await link.post('nova', PROMPT)
    const digest = String(reply.headers['x-cmr-evidence-sha256'])
    const node = {
      model: 'glm',
      compose_hash: MODEL_HASH,
      measurement: MEASUREMENT,
      os_pinned: true,
      signing_address: SIGNER,
      gpu: null,
    }
    expect(proofs.hop('nova', digest)?.block.evidence_summary).toMatchObject({
      compose_hash: COMPOSE_HASH,
      models: [node, node],
    })
    const nodeKey = { model: 'glm', algorithm: 'ed25519', address: SIGNER }
    expect(proofs.hop('nova', digest)?.messageKey).toEqual({
      algorithm: 'ed25519',
      address: 'ab'.repeat(32),
      behind: [nodeKey, nodeKey],
    })
    const options = { verifyQuote: createQuoteVerifier(intel.rootDer) }
    expect(failuresOf(await rejudge(proofs, digest, POLICY, options))).toEqual([])
    const without = { ...POLICY, models: undefined }
    expect(failuresOf(await rejudge(proofs, digest, without, options))).toEqual([])
    const other = { ...POLICY, models: { ...POLICY.models, names: ['glm', 'other'] } }
    expect(failuresOf(await rejudge(proofs, digest, other, options))).toEqual([
      'provider_policy: what stands behind a gateway does not hold (model_missing)',
    ])
  })

  it('shows nodes by the key they have for TLS as well', async () => {
    const { settled } = await start({
      node: {
        layout: 'tls',
        tlsSpkiSha256: otherTls.spkiSha256,
        tlsFingerprint: otherTls.spkiSha256,
      },
    })
    expect(await settled()).toMatchObject({ state: 'verified', reason: null })
  })

  it.each<[string, () => Change, string]>([
    [
      'shows no node of a model',
      () => ({ models: { names: ['glm', 'missing'] } }),
      'what stands behind a gateway does not hold (model_missing)',
    ],
    [
      'shows none at all',
      () => ({ answer: (shown) => ({ ...shown, model_attestations: undefined }) }),
      'what stands behind a gateway does not hold (model_missing)',
    ],
    [
      'shows one node that runs something else',
      () => ({ node: { appCompose: APP_COMPOSE, events: bootEvents() } }),
      'the workload is not one the operator allows, or is not the one measured',
    ],
    [
      'shows one node on another OS',
      () => ({ node: { guest: { mrConfigId: new Uint8Array(48), mrTd: register(0x66) } } }),
      'the measurement is not one the operator allows',
    ],
    [
      "shows a node's report for another nonce",
      () => ({ node: { nonce: 'ab'.repeat(32) } }),
      'the evidence was not made for our nonce',
    ],
    [
      'shows a node that says another key than its quote holds',
      () => ({
        answer: (shown) =>
          JSON.parse(
            JSON.stringify(shown).replaceAll(
              `"signing_address":"${SIGNER}"`,
              `"signing_address":"${'ce'.repeat(32)}"`,
            ),
          ),
      }),
      'the evidence vouches for another TLS key than the connection has',
    ],
    [
      'shows a node whose log does not add up',
      () => ({
        node: {
          events: [...bootEvents(MODEL_HASH), { name: 'x', payload: '00' }],
          guest: {
            mrConfigId: new Uint8Array(48),
            rtMr: [register(0x12), register(0x13), register(0x14), register(0)],
          },
        },
      }),
      'the event log does not add up to the measured register',
    ],
  ])('gets no prompt where it %s', async (_what, change, reason) => {
    const { settled, link, provider } = await start(change())
    expect(await settled()).toMatchObject({ state: 'failed', reason })
    await link.post('nova', PROMPT)
    expect(provider.received()).not.toContain(PROMPT)
  })
})
