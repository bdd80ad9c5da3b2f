import type { Egress } from '../../src/enclave/open-egress.ts'
import { ChunkJoiner } from '../../src/enclave/egress/chunk-joiner.ts'
import { createProviderEgress } from '../../src/enclave/egress/provider-egress.ts'
import { createObservedFetch } from '../../src/enclave/adapters/observed-fetch.ts'
import { createProviderProofs } from '../../src/enclave/proofs/provider-evidence.ts'
import type { EvidenceDeps } from '../../src/enclave/adapters/adapter.ts'
import { openAdapter, type OpenAdapter } from '../../src/enclave/adapters/table.ts'
import type { ProviderProofs } from '../../src/enclave/proofs.ts'
import type { DaemonTls } from '../../src/protocol/boot.ts'
import { checkConfig } from '../../src/protocol/config-rules.ts'
import type { ProviderProof } from '../../src/protocol/provider-proof.ts'
import { startEgressLink, type EgressLink } from './egress-link.ts'
import { startRecordingProvider, type RecordingProvider } from './recording-provider.ts'
import { noProvenance } from '../../src/verify/providers/provenance.ts'

/** The documents of a provider by path and query; undefined: 404. */
export type Documents = (url: URL) => Promise<string | undefined> | string | undefined

export interface AttestedSetting {
  readonly attestation: Readonly<Record<string, unknown>>
  readonly documents: Documents
  readonly tls?: DaemonTls
  readonly mode?: 'local' | 'production'
  readonly allowSimulated?: boolean
  readonly scheme?: 'https' | 'http'
  readonly apiKey?: string
  /** In place of the network and of vendors' verifiers. */
  readonly deps?: Partial<EvidenceDeps>
  /** In place of adapters on this very thread. */
  readonly openAdapter?: OpenAdapter
}

/** A provider on loopback, its proof, and the egress to it; only the network is not real. */
export interface AttestedWorld {
  readonly provider: RecordingProvider
  readonly proofs: ProviderProofs
  readonly egress: Egress
  readonly link: EgressLink
  /** The state of the proof after the first verification. */
  readonly settled: () => Promise<ProviderProof>
  readonly standing: () => ProviderProof
  /** Milliseconds to add to the clock from now on. */
  readonly advance: (ms: number) => void
  readonly close: () => Promise<void>
}

export const PROMPT = 'the prompt that must not leave'

export async function startAttested(setting: AttestedSetting): Promise<AttestedWorld> {
  const provider = await startRecordingProvider(async (request, response) => {
    const url = new URL(request.url ?? '/', 'https://provider')
    for await (const _ of request);
    const document = request.method === 'GET' ? await setting.documents(url) : '{"ok":true}'
    response.writeHead(document === undefined ? 404 : 200).end(document)
  }, setting.tls)
  let offset = 0
  const now = () => Date.now() + offset
  const deps: EvidenceDeps = {
    now,
    newNonce: () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex'),
    observedFetch: createObservedFetch(Date.now),
    webFetch: () => Promise.reject(new Error('no network in tests')),
    verifyProvenance: noProvenance,
    verifyQuote: () => {
      throw new Error('no quotes in this test')
    },
    findSnpChain: () => Promise.reject(new Error('no certificates in this test')),
    findRevocationList: async () => undefined,
    ownSimulated: 'refuse',
    ...setting.deps,
  }
  const proofs = createProviderProofs({
    openAdapter:
      setting.openAdapter ?? ((attestation, subject) => openAdapter(attestation, subject, deps)),
    now,
    random: () => 0,
    changed: () => {},
    log: () => {},
  })
  const egress = createProviderEgress({
    proofs,
    connectMs: () => 2000,
    joiner: new ChunkJoiner({ now: Date.now }),
    maxStreams: 1_000,
    now: Date.now,
    log: () => {},
  })
  const link = await startEgressLink(egress)
  proofs.configure(configFor(provider.port, setting))
  const standing = () => {
    const [proof] = proofs.list()
    if (proof === undefined) throw new Error('no provider')
    return proof
  }
  return {
    provider,
    proofs,
    egress,
    link,
    standing,
    advance: (ms) => void (offset += ms),
    async settled() {
      while (standing().state === 'pending') {
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      return standing()
    },
    async close() {
      proofs.close()
      egress.close()
      await link.close()
      await provider.close()
    },
  }
}

function configFor(port: number, setting: AttestedSetting) {
  const { attestation, mode = 'local', allowSimulated = false, scheme, apiKey } = setting
  const check = checkConfig({
    service: { name: 'test', mode, allow_simulated: allowSimulated },
    providers: { nova: { base_url: `${scheme ?? 'https'}://127.0.0.1:${port}/v1`, attestation } },
    routes: [],
  })
  if (!check.ok) throw new Error(JSON.stringify(check.problems))
  return {
    config: check.config,
    text: '',
    sha256: 'cf'.repeat(32),
    adminToken: 'admin-token',
    webhookSecrets: {},
    providerApiKeys: apiKey === undefined ? {} : { nova: apiKey },
  }
}
