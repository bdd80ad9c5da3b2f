import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { TINFOIL_MEASUREMENT } from '../../src/standin/attested-tinfoil.ts'
import type { AttestationBlock } from '../../src/protocol/receipt.ts'
import { completionIn, completionOf } from '../support/answers.ts'
import { startStack, until, type Stack } from '../support/stack.ts'
import { standinOf, type Standin } from '../support/standin.ts'

const run = promisify(execFile)

const ROOT = { standin: 'release root' }
const PRICES = { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 }
const HTTPS = 'https://standin.localhost'

const route = (model_key: string, provider: string) => ({
  model_key,
  provider,
  upstream_model: 'zai-org/GLM-5',
  type: 'chat',
  pricing: PRICES,
})

/** Each adapter that a simulated platform can satisfy, and some providers that no proof can come of. */
const CONFIG = {
  // One attempt a request: a provider without a proof must not cost it.
  service: { name: 'attested-router', mode: 'local', max_attempts: 1 },
  providers: {
    plain: {
      base_url: 'http://standin.localhost/plain/v1',
      attestation: { adapter: 'none' },
    },
    nova: {
      base_url: `${HTTPS}/nova/v1`,
      attestation: { adapter: 'envelope', root_key: ROOT },
    },
    vega: {
      base_url: `${HTTPS}/vega/v1`,
      attestation: { adapter: 'tinfoil', allowed_measurements: [TINFOIL_MEASUREMENT] },
    },
    wrong: {
      base_url: `${HTTPS}/wrong/v1`,
      attestation: { adapter: 'tinfoil', allowed_measurements: ['00'.repeat(48)] },
    },
    bare: {
      base_url: 'http://standin.localhost/bare/v1',
      attestation: { adapter: 'envelope', root_key: ROOT },
    },
  },
  routes: [
    route('glm', 'nova'),
    route('tin', 'vega'),
    route('unproven', 'wrong'),
    route('downgraded', 'bare'),
    route('open', 'plain'),
  ],
}

let stack: Stack
let standin: Standin

beforeAll(async () => {
  stack = await startStack({ config: CONFIG })
  standin = standinOf(stack)
  await until(async () => (await states())['nova'] === 'verified')
  await until(async () => (await states())['wrong'] === 'failed')
})
afterAll(() => stack.stop())
beforeEach(() => standin.reset())

interface ProofStatus {
  readonly provider: string
  readonly adapter: string
  readonly state: string
  readonly reason: string | null
}

async function providers(): Promise<readonly ProofStatus[]> {
  const answer = await stack.fetch('/admin/providers', {
    headers: { authorization: `Bearer ${stack.local.admin_token}` },
  })
  const { data }: { data: ProofStatus[] } = await answer.json()
  return data
}

async function states(): Promise<Record<string, string>> {
  return Object.fromEntries((await providers()).map(({ provider, state }) => [provider, state]))
}

function chat(model: string, more: object = {}): Promise<Response> {
  return stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello!' }], ...more }),
  })
}

async function inferenceHop(receiptId: string | undefined): Promise<AttestationBlock> {
  const answer = await stack.fetch(`/v1/receipts/${receiptId}`)
  const { receipt }: { receipt: string } = await answer.json()
  writeFileSync(join(stack.stateDir, 'receipt.json'), JSON.stringify({ id: receiptId, receipt }))
  const payload = Buffer.from(receipt.split('.')[1] ?? '', 'base64url').toString()
  const claims: { inference_attestation: AttestationBlock } = JSON.parse(payload)
  return claims.inference_attestation
}

interface Verified {
  readonly ok: boolean
  readonly checks: readonly { readonly name: string; readonly ok: boolean }[]
}

/** `npm run verify -- receipt` on the receipt read last. */
async function verify(...options: string[]): Promise<Verified> {
  const receipt = join(stack.stateDir, 'receipt.json')
  return runVerify('receipt', receipt, '--base-url', stack.local.base_url, ...options)
}

async function runVerify(...options: string[]): Promise<Verified> {
  const args = ['src/cli/main.ts', 'verify', ...options, '--state', 'none', '--json']
  const command = run(process.execPath, args, {
    cwd: PROJECT_DIR,
    env: { ...process.env, CMR_API_KEY: stack.local.api_key },
  })
  const { stdout } = await command.catch((failed: { stdout: string }) => failed)
  return JSON.parse(stdout)
}

/** What the daemon demands of a provider, as a file for an auditor to demand the same or other things. */
function policyFile(provider: string, change: object = {}): string {
  const file = join(stack.stateDir, `${provider}-policy.json`)
  writeFileSync(file, JSON.stringify({ ...attestationOf(provider), ...change }))
  return file
}

/** The stand-in's root as the daemon was given it. */
function providerRootFile(): string {
  const file = join(stack.stateDir, 'provider-root.json')
  writeFileSync(file, JSON.stringify(attestationOf('nova')?.root_key))
  return file
}

function attestationOf(provider: string) {
  const path = join(stack.stateDir, 'config.json')
  const config: { providers: Record<string, { attestation: { root_key?: object } }> } = JSON.parse(
    readFileSync(path, 'utf8'),
  )
  return config.providers[provider]?.attestation
}

describe('providers', () => {
  test('are listed with what is proven of them, and why not', async () => {
    const listed = async () =>
      (await providers()).map(({ provider, adapter, state, reason }) => [
        provider,
        adapter,
        state,
        reason,
      ])
    await expect.poll(listed, { timeout: 30_000 }).toEqual([
      ['plain', 'none', 'unattested', null],
      ['nova', 'envelope', 'verified', null],
      ['vega', 'tinfoil', 'verified', null],
      ['wrong', 'tinfoil', 'failed', 'the measurement is not one the operator allows'],
      [
        'bare',
        'envelope',
        'failed',
        'the address is not https, so no connection can be bound to evidence',
      ],
    ])
  })

  test.each(['unproven', 'downgraded'])('without a proof get no prompt (%s)', async (model) => {
    const answer = await chat(model)
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ error: { code: 'routes_unavailable' } })
    expect(await standin.exchanges()).toEqual([])
    const metrics = await (
      await stack.fetch('/admin/metrics', {
        headers: { authorization: `Bearer ${stack.local.admin_token}` },
      })
    ).text()
    expect(metrics).toMatch(
      new RegExp(`cmr_attempts_total{route="[^"]*${model}",outcome="attestation_failed"} [1-9]`),
    )
  })

  test('without a proof are passed over for the next one, and cost no attempt', async () => {
    const { service } = await completionOf(await chat('unproven', { failover: ['glm'] }))
    expect(service).toMatchObject({ routed_model: 'nova/glm', failover: true })
  })

  test('are listed with what is proven of them now', async () => {
    const answer = await stack.fetch('/v1/models?detail=true')
    const { data }: { data: { id: string; service: { attestation: object } }[] } =
      await answer.json()
    const proofOf = (id: string) => data.find((entry) => entry.id === id)?.service.attestation
    expect(proofOf('nova/glm')).toEqual({
      attested: true,
      adapters: ['envelope'],
      proofs: [
        {
          route: 'nova/glm',
          kind: 'envelope',
          state: 'verified',
          strength: 'simulated',
          age_seconds: expect.any(Number),
          expires_at: expect.stringMatching(/Z$/),
        },
      ],
    })
    expect(proofOf('unproven')).toMatchObject({
      proofs: [{ state: 'failed', strength: null, age_seconds: null, expires_at: null }],
    })
    expect(proofOf('open')).toEqual({ attested: false, adapters: [] })
  })

  test('without attestation are called without proof, and receipts say so', async () => {
    const { service } = await completionOf(await chat('open'))
    expect(await inferenceHop(service.receipt_id)).toMatchObject({
      verified: false,
      verification_mode: 'none',
    })
  })
})

describe('the router itself', () => {
  test("proves itself for a nonce over its TLS address, and brings its platform's revocation list", async () => {
    const root = ['--root-key', stack.local.root_key]
    const address = ['attestation', stack.local.tls_base_url, ...root, '--require-crl']
    const verdict = await runVerify(...address, '--allow-simulated')
    expect(verdict.checks.filter(({ ok }) => !ok)).toEqual([])
    expect(verdict.ok).toBe(true)
    const names = verdict.checks.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['nonce', 'tls_key', 'revocation']))
    const refused = await runVerify(...address, '--environment', 'local')
    expect(refused.checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual([
      'simulated_platform',
    ])
  })
})

describe('a provider that was away', () => {
  test('is called again as soon as it is back', async () => {
    process.kill(stack.localNow().pids.standin ?? 0, 'SIGKILL')
    await until(async () => (await chat('glm')).status === 200)
    const { service } = await completionOf(await chat('glm'))
    expect(await inferenceHop(service.receipt_id)).toMatchObject({ verified: true })
  })
})

describe('the receipt of an answer from an attested provider', () => {
  test('verifies end to end, the evidence of both hops included', async () => {
    const { service } = await completionOf(await chat('glm'))
    const hop = await inferenceHop(service.receipt_id)
    expect(hop).toMatchObject({
      tee: 'sev-snp',
      verified: true,
      verification_mode: 'snp-envelope',
      attestation_strength: 'simulated',
      evidence_summary: { nonce_bound: true },
    })
    const verdict = await verify(
      '--allow-simulated',
      '--require-provider',
      '--root-key',
      stack.local.root_key,
      '--provider-root-key',
      providerRootFile(),
    )
    const failed = verdict.checks.filter(({ ok }) => !ok)
    expect(failed).toEqual([])
    expect(verdict.ok).toBe(true)
    const names = verdict.checks.map(({ name }) => name)
    expect(names).toContain('inference_attestation.provider_policy')
    expect(names).toContain('inference_attestation.hop_evidence')
  })

  test.each([
    ['glm', 'nova', { allowed_host_data: ['ab'.repeat(32)] }],
    ['tin', 'vega', { allowed_measurements: ['00'.repeat(48)] }],
  ])(
    'of model %s holds under a policy of the auditor alone, and fails under another',
    async (model, provider, other) => {
      const { service } = await completionOf(await chat(model))
      await inferenceHop(service.receipt_id)
      const verifyUnder = async (...policy: string[]) => {
        const root = ['--root-key', stack.local.root_key]
        const verdict = await verify('--allow-simulated', '--require-provider', ...root, ...policy)
        return verdict.checks.filter(({ ok }) => !ok).map(({ name }) => name)
      }
      expect(await verifyUnder('--provider-policy', policyFile(provider))).toEqual([])
      expect(await verifyUnder('--provider-policy', policyFile(provider, other))).toEqual([
        'inference_attestation.provider_policy',
        'provider_attested',
      ])
      expect(await verifyUnder()).toEqual(['provider_attested'])
    },
  )

  test('fails where simulated platforms are not allowed', async () => {
    const { service } = await completionOf(await chat('glm'))
    await inferenceHop(service.receipt_id)
    const verdict = await verify('--require-provider', '--root-key', stack.local.root_key)
    expect(verdict.ok).toBe(false)
  })

  test('binds a stream to the evidence of its connection, and evidence can be fetched', async () => {
    const text = await (await chat('tin', { stream: true })).text()
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    const events = text.split('\n\n').filter((event) => event.startsWith('data: '))
    const { service } = completionIn(events.at(-2)?.slice('data: '.length) ?? '')
    const hop = await inferenceHop(service.receipt_id)
    expect(hop).toMatchObject({ verification_mode: 'tinfoil-v3-snp', verified: true })
    const answer = await stack.fetch(`/v1/receipts/${service.receipt_id}/evidence`)
    const { evidence }: { evidence: { sha256: string; data_b64: string }[] } = await answer.json()
    const piece = evidence.find(
      ({ sha256 }) => sha256 === hop.evidence_summary?.['evidence_sha256'],
    )
    const document: unknown = JSON.parse(
      Buffer.from(piece?.data_b64 ?? '', 'base64').toString('utf8'),
    )
    expect(document).toMatchObject({ adapter: 'tinfoil' })
  })
})
