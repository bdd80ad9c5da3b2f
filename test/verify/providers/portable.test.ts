import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { Miniflare, convertV4MiniflareOptions } from 'miniflare'
import { describe, expect, test } from 'vitest'
import { pcsOverWeb } from '../../../src/enclave/adapters/intel-service.ts'
import { fromUtf8, toBase64 } from '../../../src/protocol/bytes.ts'
import { fetchCollateral } from '../../../src/verify/tdx/collateral.ts'
import { createQuoteVerifier } from '../../../src/verify/tdx/quote.ts'
import { readRealFile } from '../../support/real-files.ts'
import { makeSyntheticIntel } from '../../support/synthetic-intel.ts'
import { answerAsIntel, fetchFrom, makeQuote } from '../../support/synthetic-tdx.ts'

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

const QUOTE_ENTRY = `
  import { fromBase64 } from '../protocol/bytes.ts'
  import { createQuoteVerifier } from './tdx/quote.ts'

  export default {
    async fetch(request) {
      const { root, quote, collateral, now } = await request.json()
      const verify = createQuoteVerifier(fromBase64(root))
      return new Response(
        await verify(fromBase64(quote), collateral, now).then(({ tcbStatus }) => tcbStatus, String),
      )
    },
  }`

const NOW = Date.parse('2026-11-20T12:00:00Z')
const HARDWARE = 'EvidenceRefused: the hardware evidence does not hold'

/** A quote under Intel's authorities as they are, or with one certificate that has ended. */
async function quoteUnder(ended?: 'chip' | 'authority' | 'signing') {
  const intel = await makeSyntheticIntel(NOW, ended === undefined ? {} : { ended })
  const quote = await makeQuote(intel, {})
  const source = pcsOverWeb(fetchFrom(await answerAsIntel(intel, { now: NOW })))
  return { root: intel.rootDer, quote, collateral: await fetchCollateral(quote, source) }
}

describe('judging providers', () => {
  test(
    'refuses a quote whose certificates have ended, in Node and in workerd',
    { timeout: 60_000 },
    async () => {
      const miniflare = new Miniflare(
        convertV4MiniflareOptions({
          host: '127.0.0.1',
          modules: [{ type: 'ESModule', path: 'quote.js', contents: await bundle(QUOTE_ENTRY) }],
          modulesRoot: '/',
          compatibilityDate: '2026-11-17',
        }),
      )
      const judge = async (ended?: 'chip' | 'authority' | 'signing') => {
        const { root, quote, collateral } = await quoteUnder(ended)
        const verify = createQuoteVerifier(root)
        const here = await verify(quote, collateral, NOW).then(({ tcbStatus }) => tcbStatus, String)
        const there = await miniflare.dispatchFetch('http://quote.test/', {
          method: 'POST',
          body: JSON.stringify({
            root: toBase64(root),
            quote: toBase64(quote),
            collateral,
            now: NOW,
          }),
        })
        return [here, await there.text()]
      }
      try {
        expect(await judge()).toEqual(['UpToDate', 'UpToDate'])
        const refused = [`${HARDWARE} (tdx_quote)`, `${HARDWARE} (certificate_dates)`]
        expect(await judge('chip')).toEqual(refused)
        expect(await judge('authority')).toEqual(refused)
        expect(await judge('signing')).toEqual(refused)
      } finally {
        await miniflare.dispose()
      }
    },
  )

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
