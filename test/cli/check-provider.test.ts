import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkOnce } from '../../src/cli/check-provider.ts'
import { createObservedFetch } from '../../src/enclave/adapters/observed-fetch.ts'
import { makeTlsIdentity } from '../../src/enclave/keys/tls-identity.ts'
import type { SimulatedChain } from '../../src/enclave/simulated/chain.ts'
import { runChain } from '../support/run-authority.ts'
import type { DaemonTls } from '../../src/protocol/boot.ts'
import type { ProviderConfig } from '../../src/protocol/config.ts'
import { providerSchema } from '../../src/protocol/config.ts'
import { TINFOIL_MEASUREMENT, tinfoilV3 } from '../../src/standin/attested-tinfoil.ts'
import { run as runProgram } from '../support/run-program.ts'
import { startRecordingProvider, type RecordingProvider } from '../support/recording-provider.ts'
import { noProvenance } from '../../src/verify/providers/provenance.ts'

let chain: SimulatedChain
let tls: DaemonTls
let enclave: RecordingProvider
let directory: string

beforeAll(async () => {
  chain = await runChain()
  tls = await makeTlsIdentity([], new Date())
  directory = await mkdtemp(join(tmpdir(), 'cmr-check-'))
  enclave = await startRecordingProvider(async (request, response) => {
    const nonce = new URL(request.url ?? '/', 'https://x').searchParams.get('nonce') ?? ''
    response.end(await tinfoilV3({ chain, tlsSpkiSha256: tls.spkiSha256 }, nonce))
  }, tls)
}, 60_000)
afterAll(async () => {
  await enclave.close()
  await rm(directory, { recursive: true })
})

function providerOf(change: object = {}): ProviderConfig {
  return providerSchema.parse({
    base_url: `https://127.0.0.1:${enclave.port}/v1`,
    attestation: { adapter: 'tinfoil', allowed_measurements: [TINFOIL_MEASUREMENT], ...change },
  })
}

function checkIt(provider: ProviderConfig, mode: 'local' | 'production' = 'local') {
  return checkOnce(
    { name: 'vega', provider, apiKey: undefined, mode },
    {
      now: Date.now,
      newNonce: () => 'a1'.repeat(32),
      observedFetch: createObservedFetch(Date.now),
      webFetch: () => Promise.reject(new Error('no network')),
      verifyProvenance: noProvenance,
      verifyQuote: () => Promise.reject(new Error('no quotes')),
      findSnpChain: () => Promise.reject(new Error('no certificates')),
      findRevocationList: () => Promise.resolve(undefined),
      ownSimulated: { arkSpkiSha256: chain.arkSpkiSha256 },
    },
  )
}

describe('a look at one provider', () => {
  test('reports what is proven of it, and what to pin', async () => {
    const outcome = await checkIt(providerOf())
    expect(outcome).toMatchObject({
      ok: true,
      summary: 'PROVEN: vega by tinfoil-v3-snp, simulated',
      notes: expect.arrayContaining([
        `measurement: ${TINFOIL_MEASUREMENT}`,
        `tls_spki_sha256: ${tls.spkiSha256}`,
      ]),
    })
    expect(outcome.checks.map(({ name, ok }) => [name, ok])).toEqual([
      ['hop_evidence', true],
      ['hop_age', true],
      ['provider_policy', true],
      ['hop_consistent', true],
    ])
  })

  test.each([
    [
      { allowed_measurements: ['00'.repeat(48)] },
      'local',
      'the measurement is not one the operator allows',
    ],
    [{}, 'production', 'the hardware evidence does not hold (simulated_platform)'],
  ] as const)('tells why it is not proven, in words of our own', async (change, mode, reason) => {
    expect(await checkIt(providerOf(change), mode)).toMatchObject({
      ok: false,
      summary: `NOT PROVEN: vega: ${reason}`,
      checks: [{ name: 'provider_attested', ok: false, detail: reason }],
    })
  })

  test('is refused where there is nothing to look at', async () => {
    const plain = providerSchema.parse({
      base_url: 'https://127.0.0.1:1/v1',
      attestation: { adapter: 'none' },
    })
    await expect(checkIt(plain)).rejects.toThrow('vega is called without attestation')
  })
})

describe('provider check', () => {
  const run = (...args: string[]) => runProgram(['provider', 'check', ...args])

  test('exits 1 where the provider is not proven, and 2 where it cannot be asked', async () => {
    const config = join(directory, 'config.json')
    const state = ['--state-dir', directory]
    await writeFile(
      config,
      JSON.stringify({ service: { name: 'r' }, providers: { vega: providerOf() }, routes: [] }),
    )
    const unproven = await run('vega', '--config', config, '--json', ...state)
    expect(JSON.parse(unproven.out)).toMatchObject({
      ok: false,
      summary: 'NOT PROVEN: vega: the hardware evidence does not hold (simulated_platform)',
    })
    expect(unproven.code).toBe(1)
    const unknown = await run('nobody', '--config', config, ...state)
    expect(unknown).toMatchObject({
      code: 2,
      err: expect.stringContaining('no provider is named "nobody"'),
    })
    const missing = await run('vega', '--config', join(directory, 'none.json'), ...state)
    expect(missing).toMatchObject({ code: 2, err: expect.stringContaining('cannot be read') })
  })
})
