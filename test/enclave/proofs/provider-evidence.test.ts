import { afterEach, describe, expect, it } from 'vitest'
import { EvidenceRefused } from '../../../src/verify/evidence-refused.ts'
import type { LoadedConfig } from '../../../src/enclave/config/load-config.ts'
import { createProviderProofs } from '../../../src/enclave/proofs/provider-evidence.ts'
import type { ProviderProofs } from '../../../src/enclave/proofs.ts'
import { checkConfig } from '../../../src/protocol/config-rules.ts'
import type { EvidenceDeps } from '../../../src/enclave/adapters/adapter.ts'
import { openAdapter } from '../../../src/enclave/adapters/table.ts'
import { noProvenance } from '../../../src/verify/providers/provenance.ts'

let proofs: ProviderProofs

afterEach(() => proofs.close())

/** Proofs of providers that never answer, and how often each was asked. */
function start() {
  const asked: string[] = []
  const deps: EvidenceDeps = {
    now: Date.now,
    newNonce: () => 'ab'.repeat(32),
    observedFetch: ({ url }) => {
      asked.push(new URL(url).hostname)
      return Promise.reject(new EvidenceRefused('unreachable'))
    },
    webFetch: () => Promise.reject(new Error('no network')),
    verifyProvenance: noProvenance,
    verifyQuote: () => {
      throw new Error('no quotes')
    },
    findSnpChain: () => Promise.reject(new Error('no network')),
    findRevocationList: async () => undefined,
    ownSimulated: 'refuse',
  }
  proofs = createProviderProofs({
    openAdapter: (attestation, subject) => openAdapter(attestation, subject, deps),
    now: Date.now,
    random: () => 0,
    changed: () => {},
    log: () => {},
  })
  return asked
}

const NONE = { adapter: 'none' }
const TINFOIL = { adapter: 'tinfoil', allowed_measurements: ['ab'.repeat(48)] }

function loaded(providers: Record<string, object>, keys = {}): LoadedConfig {
  const check = checkConfig({
    service: { name: 'router', mode: 'local' },
    providers: Object.fromEntries(
      Object.entries(providers).map(([name, attestation]) => [
        name,
        { base_url: `https://${name}.example/v1/`, attestation },
      ]),
    ),
    routes: [],
  })
  if (!check.ok) throw new Error(JSON.stringify(check.problems))
  return {
    config: check.config,
    text: '',
    sha256: 'cf'.repeat(32),
    adminToken: 'admin-token',
    webhookSecrets: {},
    providerApiKeys: keys,
  }
}

describe('the proofs of a configuration', () => {
  it('begin at once, and not for providers without attestation', async () => {
    const asked = start()
    proofs.configure(loaded({ nova: NONE, vega: TINFOIL }))
    expect(asked).toEqual(['vega.example'])
    expect(proofs.list()).toMatchObject([
      { provider: 'nova', adapter: 'none', state: 'unattested', reason: null },
      { provider: 'vega', adapter: 'tinfoil', state: 'pending', reason: 'not verified yet' },
    ])
    expect(proofs.channel('nova')).toBeUndefined()
    expect(proofs.channel('vega')).toBeUndefined()
  })

  it('continue where nothing changed, and start over where something did', () => {
    const asked = start()
    proofs.configure(loaded({ vega: TINFOIL, lyra: TINFOIL }))
    proofs.configure(loaded({ vega: TINFOIL, lyra: { ...TINFOIL, nonce: 'required' } }))
    expect(asked).toEqual(['vega.example', 'lyra.example', 'lyra.example'])
    proofs.configure(loaded({ vega: TINFOIL }, { vega: 'another key' }))
    expect(asked).toHaveLength(4)
  })

  it('are not mixed: no evidence means no hop of an attested provider', () => {
    start()
    proofs.configure(loaded({ nova: NONE, vega: TINFOIL }))
    expect(proofs.hop('nova', null)?.block.verified).toBe(false)
    expect(proofs.hop('nova', 'ab'.repeat(32))).toBeUndefined()
    expect(proofs.hop('vega', null)).toBeUndefined()
    expect(proofs.evidence('ab'.repeat(32))).toBeUndefined()
  })

  it('still know a provider after a reload dropped it, so that running exchanges end', () => {
    start()
    proofs.configure(loaded({ nova: NONE }))
    proofs.configure(loaded({}))
    expect(proofs.list()).toEqual([])
    expect(proofs.hop('nova', null)?.block.verified).toBe(false)
  })
})
