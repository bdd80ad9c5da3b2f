import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { buildVerifierPage } from '../../src/cli/build/browser-page.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { CHROMIUM, launchChromium } from '../support/chromium.ts'
import { listen } from '../support/listen.ts'
import { encodeKeyConfig } from '../../src/protocol/hpke-key-config.ts'
import { LOG_POLICY, logProofsOf } from '../support/release-log.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { EVIDENCE_TAMPERINGS, inPart } from '../support/document-tamperings.ts'
import {
  askOnce,
  boxesIn,
  createTamperer,
  fillTrustInto,
  pressVerify,
  type Answered,
} from '../support/verifier-page.ts'

/** The verifier page as people use it: the built file, opened from disk in a real browser, against a running stack. */

const REQUEST = JSON.stringify({ model: 'glm-5', messages: [{ role: 'user', content: 'Hello!' }] })

const configSchema = z.looseObject({
  providers: z.record(
    z.string(),
    z.looseObject({ attestation: z.looseObject({ root_key: z.unknown().optional() }) }),
  ),
})

/** The documents of the stack's release, as it publishes them. */
async function releaseOf(of: Stack): Promise<readonly [manifest: string, bundle: string]> {
  const read = async (path: string) => (await fetch(of.local.base_url + path)).json()
  const { workload_identity_manifest_jws: manifest } = z
    .looseObject({ workload_identity_manifest_jws: z.string() })
    .parse(await read('/attestation'))
  const { trust_bundle_jws: bundle } = z
    .looseObject({ trust_bundle_jws: z.string() })
    .parse(await read('/.well-known/trust.json'))
  return [manifest, bundle]
}

let stack: Stack
let browser: Browser
let context: BrowserContext
let page: Page
let folder: string
let file: string
let answered: Answered
const complaints: string[] = []
const addresses = new Set<string>()

describe.skipIf(CHROMIUM === undefined)(
  'the verifier page, in headless Chromium where it is installed',
  () => {
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'cmr-verifier-page-'))
      file = join(folder, 'verifier.html')
      writeFileSync(file, await buildVerifierPage(join(PROJECT_DIR, 'src')))
      ;[stack, browser] = await Promise.all([startStack(), launchChromium()])
      answered = await askOnce(stack, REQUEST)
      context = await browser.newContext()
      page = await context.newPage()
      page.on('console', (message) => complaints.push(message.text()))
      page.on('pageerror', (error) => complaints.push(error.message))
      page.on('request', (request) => addresses.add(new URL(request.url()).origin))
      // One nonce for all of this page's questions, so that one report answers them; other pages choose their own.
      await page.addInitScript(() => {
        crypto.getRandomValues = (array) => (
          array instanceof Uint8Array ? array.fill(7) : array,
          array
        )
      })
      await page.goto(`file://${file}`)
    }, 120_000)

    afterAll(async () => {
      await browser?.close()
      await stack?.stop()
      rmSync(folder, { recursive: true, force: true })
    })

    const fillTrust = (on = page) => fillTrustInto(on, stack.local)
    const verifyOn = (on: Page) => pressVerify(on)
    const verify = () => verifyOn(page)
    const boxes = (state: string) => boxesIn(page, state)
    const withTampered = createTamperer(() => context)
    /** Judges the evidence that was made before for the page's nonce: a router makes few reports a minute. */
    const verifyAgain = () => withTampered('/attestation', (text) => text, verify)

    describe('with a running router', () => {
      beforeAll(() => fillTrust())

      test('says what is proven, and that a simulated platform proves nothing', async () => {
        expect(await verify()).toBe(
          'VALID ON A SIMULATED PLATFORM, which proves nothing about any machine: there is a verified router enclave that runs an accepted release.',
        )
        expect(await boxes('failed')).toEqual([])
        expect(await boxes('holds')).toEqual(['evidence', 'bundle'])
        expect((await boxes('simulated')).toSorted().join(' ')).toBe(
          'allowed binding chip identity manifest nonce platform report revocation',
        )
      })

      test('shows a verdict for as long as nothing else is given', async () => {
        const verdict = page.locator('.verdict')
        expect(await verdict.count()).toBe(1)
        const environment = page.getByLabel('Environment')
        await environment.fill('staging')
        await verdict.waitFor({ state: 'detached' })
        expect(await boxes('holds')).toEqual([])
        await environment.fill('production')
      })

      test.each(EVIDENCE_TAMPERINGS)(
        'one changed byte in the evidence turns one box red: %s',
        async (_part, change, box) => {
          const verdict = await withTampered('/attestation', change, () => verify())
          expect(verdict).toMatch(/^NOT VALID/)
          expect(await boxes('failed')).toEqual([box])
        },
      )

      test('another HPKE key than the one that the report names turns the binding red', async () => {
        const other = Buffer.from(encodeKeyConfig(crypto.getRandomValues(new Uint8Array(32))))
        const path = '/.well-known/hpke-keys'
        expect(await withTampered(path, () => other, verifyAgain)).toMatch(/^NOT VALID.*hpke_key/)
        expect(await boxes('failed')).toEqual(['binding'])
      })

      test('a release turns the public record red or green, where a log is demanded', async () => {
        const policy = { ...LOG_POLICY, max_age_seconds: 600 }
        const buffer = Buffer.from(JSON.stringify(policy))
        const given = { name: 'log-policy.json', mimeType: 'application/json', buffer }
        await page.getByLabel('Log policy').setInputFiles(given)
        expect(await verifyAgain()).toMatch(/^NOT VALID.*trust_bundle_logged/)
        expect(await boxes('failed')).toEqual(['logged'])
        const [manifest, bundle] = await releaseOf(stack)
        const proofs = await logProofsOf([manifest, bundle], Date.now())
        const change = (text: string) =>
          JSON.stringify({ ...z.looseObject({}).parse(JSON.parse(text)), log_proofs: proofs })
        expect(await withTampered('/.well-known/trust.json', change, verifyAgain)).toMatch(
          /^VALID ON A SIMULATED/,
        )
        expect(await boxes('holds')).toContain('bundle')
        expect(await boxes('simulated')).toContain('logged')
        await page.getByRole('button', { name: 'Remove log-policy.json' }).click()
      })

      test('an answer to another nonce turns the nonce red', async () => {
        const other = await (
          await fetch(`${stack.local.base_url}/attestation?nonce=${'ab'.repeat(32)}`)
        ).text()
        expect(
          await withTampered(
            '/attestation',
            () => other,
            () => verify(),
          ),
        ).toMatch(/^NOT VALID.*nonce/)
        expect(await boxes('failed')).toEqual(['nonce'])
      })

      test.each([0, 1, 2])(
        'one changed byte in part %i of the bundle turns the bundle red',
        async (part) => {
          const change = inPart('trust_bundle_jws', part)
          expect(await withTampered('/.well-known/trust.json', change, verifyAgain)).toMatch(
            /^NOT VALID/,
          )
          expect(await boxes('failed')).toEqual(['bundle'])
        },
      )

      test('says by name what is wrong with what was typed, at the field', async () => {
        const root = page.getByLabel('Release root (public JWK)')
        const before = await root.inputValue()
        await root.fill('{"kty":"RSA"}')
        await page.getByRole('button', { name: 'Verify' }).click()
        await page.getByText('This is not a public ES256 key in JWK form.').first().waitFor()
        expect(await root.getAttribute('aria-invalid')).toBe('true')
        await root.fill(before)
      })
    })

    describe('with a receipt', () => {
      beforeAll(async () => {
        await page.getByRole('radio', { name: 'A receipt' }).check()
        await fillTrust()
        await page.getByLabel('Receipt', { exact: true }).fill(answered.receipt)
        await bring('Your request', 'request.json', REQUEST)
        await bring('The answer that you got', 'answer.json', answered.answer)
        await page.getByText('Provider, offline files').click()
        await page.getByLabel('Provider policy').fill(JSON.stringify(providerRoot()))
        await page.getByLabel('API key').fill(stack.local.api_key)
      })

      const bring = (label: string, name: string, text: string) =>
        page
          .getByLabel(label, { exact: true })
          .setInputFiles({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(text) })

      function providerRoot(): unknown {
        const config = configSchema.parse(
          JSON.parse(readFileSync(join(stack.stateDir, 'config.json'), 'utf8')),
        )
        return Object.values(config.providers).find(
          ({ attestation }) => attestation.root_key !== undefined,
        )?.attestation.root_key
      }

      const expectReceiptRed = async (text: string, expected: string) => {
        await page.getByLabel('Receipt', { exact: true }).fill(text)
        try {
          expect(await verify()).toMatch(/^NOT VALID/)
          expect(await boxes('failed')).toEqual([expected])
        } finally {
          await page.getByLabel('Receipt', { exact: true }).fill(answered.receipt)
        }
      }

      test('says which answer it is about, and what was judged again', async () => {
        expect(await verify()).toMatch(/^VALID ON A SIMULATED PLATFORM/)
        expect(await boxes('failed')).toEqual([])
        expect(await boxes('open')).toEqual([])
        const about = await page.getByRole('region', { name: 'What this proves' }).innerText()
        expect(about).toContain('the request that you brought and the answer that you brought')
        expect(about).toContain('(asked for: glm-5)')
        expect(about).toContain('The provider ran in an enclave that your policy accepts.')
      })

      test.each([0, 1, 2])(
        'one changed byte in part %i of it turns the receipt red',
        async (part) => {
          await expectReceiptRed(inPart('receipt', part)(answered.receipt), 'receipt')
        },
      )

      test('another id turns the exchange red', async () => {
        await expectReceiptRed(
          answered.receipt.replace(answered.id, '00000000-0000-4000-8000-000000000000'),
          'exchange',
        )
      })

      test('one changed byte in the key set turns the receipt and its key red', async () => {
        const change = (text: string) =>
          text.replaceAll(/"x":"(.)/g, (_all, first: string) => `"x":"${first === 'A' ? 'B' : 'A'}`)
        expect(await withTampered('/.well-known/jwks.json', change, () => verify())).toMatch(
          /^NOT VALID/,
        )
        expect(await boxes('failed')).toEqual(['receipt'])
      })

      test("one changed byte in the router's evidence turns the evidence red", async () => {
        const change = (text: string) => text.replace('"workload":"router"', '"workload":"routes"')
        expect(await withTampered(/^\/attestation\/[0-9a-f]{64}$/, change, () => verify())).toMatch(
          /^NOT VALID/,
        )
        expect(await boxes('failed')).toEqual(['evidence'])
      })

      test("one changed byte in the provider's evidence turns the provider red", async () => {
        const change = (text: string) =>
          text.replaceAll(
            /"data_b64":"(.)/g,
            (_all, first: string) => `"data_b64":"${first === 'A' ? 'B' : 'A'}`,
          )
        expect(await withTampered(/\/evidence$/, change, () => verify())).toMatch(/^NOT VALID/)
        expect(await boxes('failed')).toEqual(['provider'])
      })

      test('one changed byte in the newest bundle turns the newest bundle red', async () => {
        const change = inPart('trust_bundle_jws', 2)
        expect(await withTampered('/.well-known/trust.json', change, () => verify())).toMatch(
          /^NOT VALID/,
        )
        expect(await boxes('failed')).toEqual(['newest'])
      })

      test('another request or answer turns the exchange red', async () => {
        await bring('Your request', 'request.json', `${REQUEST} `)
        expect(await verify()).toMatch(/^NOT VALID.*client_request_digest/)
        expect(await boxes('failed')).toEqual(['exchange'])
        await bring('Your request', 'request.json', REQUEST)
        await bring(
          'The answer that you got',
          'answer.json',
          answered.answer.replace('Hello', 'Hullo'),
        )
        expect(await verify()).toMatch(/^NOT VALID.*client_response_digest/)
        expect(await boxes('failed')).toEqual(['exchange'])
      })

      test('is taken when it is dropped, and each file is put where it belongs', async () => {
        await page.getByLabel('Receipt', { exact: true }).fill('')
        const dropped = [
          {
            name: 'receipt.json',
            mimeType: 'application/json',
            buffer: Buffer.from(answered.receipt),
          },
          { name: 'piece', mimeType: '', buffer: Buffer.from('some evidence') },
        ]
        await page.getByLabel('Drop files here, or choose them').setInputFiles(dropped)
        await page.getByRole('button', { name: 'Remove piece' }).waitFor()
        expect(await page.getByLabel('Receipt', { exact: true }).inputValue()).toBe(
          answered.receipt,
        )
      })
    })

    test('can be used with the keyboard alone, and reports the result to a screen reader', async () => {
      const other = await context.newPage()
      try {
        await other.goto(`file://${file}`)
        await fillTrust(other)
        await other.getByLabel('Router', { exact: true }).focus()
        await other.keyboard.press('Enter')
        await other.locator('.outcome[aria-busy="false"] .verdict').waitFor()
        const focused = () => other.evaluate(() => document.activeElement?.textContent ?? '')
        expect(await focused()).toMatch(/^VALID ON A SIMULATED/)
        await other.keyboard.press('Tab')
        expect(await focused()).toContain('Chip certificates')
        await other.keyboard.press('Enter')
        expect(await other.locator('[data-box="chip"]').getAttribute('open')).not.toBeNull()
        const chain = await other.getByRole('region', { name: 'Chain of trust' }).ariaSnapshot()
        expect(chain).toContain('Trust bundle')
      } finally {
        await other.close()
      }
    })

    test('fits a phone: nothing is wider than its screen', async () => {
      const phone = await browser.newContext({
        viewport: { width: 360, height: 740 },
        hasTouch: true,
        colorScheme: 'dark',
      })
      try {
        const other = await phone.newPage()
        await other.goto(`file://${file}`)
        await fillTrust(other)
        await verifyOn(other)
        const width = await other.evaluate(() => document.documentElement.scrollWidth)
        expect(width).toBeLessThanOrEqual(360)
      } finally {
        await phone.close()
      }
    })

    test('runs from a web server as well, and asks it for nothing but itself', async () => {
      const asked: string[] = []
      const server = createServer((request, response) => {
        asked.push(request.url ?? '')
        response.setHeader('content-type', 'text/html')
        response.end(readFileSync(file))
      })
      const port = await listen(server)
      const other = await context.newPage()
      try {
        await other.goto(`http://127.0.0.1:${port}/verifier.html`)
        await fillTrust(other)
        expect(await verifyOn(other)).toMatch(/^VALID ON A SIMULATED/)
        expect(asked.filter((path) => path !== '/favicon.ico')).toEqual(['/verifier.html'])
      } finally {
        await other.close()
        server.close()
      }
    })

    test('is kept by the browser from contacting any host but the router that was named', async () => {
      const refused = await page.evaluate(() =>
        fetch('https://elsewhere.example/').then(
          () => false,
          () => true,
        ),
      )
      expect(refused).toBe(true)
      const meta = await page.locator('meta[data-confined-to]').getAttribute('content')
      expect(meta).toBe(`connect-src ${stack.local.base_url}`)
      expect([...addresses].filter((origin) => origin !== 'null')).toEqual([stack.local.base_url])
      // A provider's evidence is no public document, and its router says so.
      const expected = /elsewhere\.example|status of 404/
      const foreign = complaints.filter((text) => !expected.test(text))
      expect(foreign).toEqual([])
    })
  },
)
