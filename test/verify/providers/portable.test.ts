import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { Miniflare, convertV4MiniflareOptions } from 'miniflare'
import { describe, expect, test } from 'vitest'
import { fromUtf8, toBase64 } from '../../../src/protocol/bytes.ts'
import { readRealFile } from '../../support/real-files.ts'

/** For browsers and workerd: an import of a Node built-in fails the build. */
async function bundle(entry: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: {
      contents: entry,
      resolveDir: fileURLToPath(new URL('../../../src/verify/', import.meta.url)),
      loader: 'ts',
    },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
  })
  return outputFiles[0]?.text ?? ''
}

const ENTRY = `
  import { fromBase64 } from '../protocol/bytes.ts'
  import { providerPolicySchema } from '../protocol/provider-policy.ts'
  import { providerJudge } from './providers/provider-judge.ts'
  import { verifyIntelQuote } from './tdx/quote.ts'

  export default {
    async fetch(request) {
      const { quote, collateral, now, hop } = await request.json()
      const { tcbStatus, tdxModule } = await verifyIntelQuote(fromBase64(quote), collateral, now)
      const policy = providerPolicySchema.parse({
        adapter: 'dstack',
        allowed_compose_hashes: ['00'.repeat(32)],
      })
      const judged = await providerJudge(policy, { simulated: 'refuse' })({ ...hop, evidence: new Map() })
      return Response.json({ tcbStatus, tdxModule, checks: judged.checks })
    },
  }`

describe('judging providers', () => {
  test(
    'needs nothing of Node: a real quote is verified in workerd',
    { timeout: 60_000 },
    async () => {
      const miniflare = new Miniflare(
        convertV4MiniflareOptions({
          host: '127.0.0.1',
          modules: [{ type: 'ESModule', path: 'judge.js', contents: await bundle(ENTRY) }],
          modulesRoot: '/',
          compatibilityDate: '2026-11-17',
        }),
      )
      try {
        const answer = await miniflare.dispatchFetch('http://judge.test/', {
          method: 'POST',
          body: JSON.stringify({
            quote: toBase64(readRealFile('tdx/tdx-quote.bin')),
            collateral: JSON.parse(fromUtf8(readRealFile('tdx/tdx-quote.collateral.json'))),
            now: Date.parse('2025-06-25T00:00:00Z'),
            hop: {
              block: {
                verified: true,
                verification_mode: 'dstack-tdx',
                attestation_strength: 'hardware',
                verified_at: 1_750_000_000,
                evidence_raw: { adapter: 'dstack', quote: 'AAAA' },
              },
              exchange: { requestDigest: '', responseDigest: '' },
              at: 1_750_000_000_000,
            },
          }),
        })
        expect(await answer.json()).toMatchObject({
          tcbStatus: 'UpToDate',
          tdxModule: { version: 1, svn: 6, status: 'UpToDate' },
          checks: [
            { name: 'hop_evidence', ok: true },
            { name: 'hop_age', ok: true },
            { name: 'provider_policy', ok: false },
          ],
        })
      } finally {
        await miniflare.dispose()
      }
    },
  )
})
