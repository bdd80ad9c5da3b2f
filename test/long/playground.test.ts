import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildConsolePage } from '../../src/cli/build/browser-page.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { CHROMIUM, launchChromium } from '../support/chromium.ts'
import { faultsOf } from '../support/page-audit.ts'
import { startStack, type Stack } from '../support/stack.ts'

/** The playground, as the router serves it, in a real browser. */

const BUILT = join(PROJECT_DIR, 'dist/console.html')

describe.skipIf(CHROMIUM === undefined)('the playground, where Chromium is installed', () => {
  const complaints: string[] = []
  const addresses = new Set<string>()
  let stack: Stack
  let browser: Browser
  let page: Page
  const bodies: { readonly path: string; readonly body: string; readonly key: string }[] = []

  beforeAll(async () => {
    if (!existsSync(BUILT)) {
      mkdirSync(join(PROJECT_DIR, 'dist'), { recursive: true })
      writeFileSync(BUILT, await buildConsolePage(join(PROJECT_DIR, 'src')))
    }
    stack = await startStack()
    browser = await launchChromium()
    page = await browser.newPage()
    page.setDefaultTimeout(30_000)
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.addInitScript(() => {
      addEventListener('securitypolicyviolation', ({ violatedDirective }) =>
        console.error(`policy violated: ${violatedDirective}`),
      )
    })
    page.on('request', (request) => addresses.add(new URL(request.url()).origin))
    page.on('request', (request) => {
      const { pathname } = new URL(request.url())
      const body = request.postDataBuffer()?.toString('latin1') ?? ''
      bodies.push({
        path: pathname,
        body,
        key: request.headers()['ehbp-encapsulated-key'] ?? '',
      })
    })
    await page.goto(`${stack.local.base_url}/console/try`)
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await stack?.stop()
  })

  test('sends nothing before the router is proven against the release root', async () => {
    await page.getByLabel('API key').fill(stack.local.api_key)
    await page.getByText('Nothing is sent yet.').waitFor()
    await page.getByLabel('Your message').fill('A secret question')
    await page.getByLabel('Your message').press('Enter')
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true)
    const { publicKey } = await crypto.subtle.generateKey(
      { name: 'ECDSA', namedCurve: 'P-256' },
      true,
      ['sign', 'verify'],
    )
    const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', publicKey)
    const root = page.getByLabel('Release root (public JWK)')
    await root.fill(JSON.stringify({ kty, crv, x, y, alg: 'ES256', use: 'sig' }))
    await page.getByText('This router is not proven. Nothing is sent.').waitFor()
    // The true root, and a platform that proves nothing, which has not been accepted.
    await root.fill(readFileSync(stack.local.root_key, 'utf8'))
    await page.getByText(/This router is not proven.*(simulated_platform|environment)/).waitFor()
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true)
    expect(bodies.filter(({ path }) => path.startsWith('/v1/chat'))).toEqual([])
  })

  test('says what was verified, and against what', async () => {
    await page.getByLabel('Accept a simulated platform').check()
    await page.getByText('Encrypted to a simulated guest.').waitFor()
    await page.getByText('What was verified, and against what').click()
    const protection = page.getByRole('region', { name: 'Protection' })
    expect(await protection.innerText()).toMatch(
      /Trust anchor: your release root[^]*a simulated root, as you allowed[^]*encrypted to the key[^]*hpke key/i,
    )
  })

  test('encrypts each question to the guest, and shows the verified receipt of each answer', async () => {
    await page.getByLabel('Model', { exact: true }).selectOption('glm-5')
    for (const [index, question] of ['A secret question', 'And another one'].entries()) {
      await page.getByLabel('Your message').fill(question)
      await page.getByLabel('Your message').press('Enter')
      await page.locator('.receipt').nth(index).waitFor()
    }
    const receipts = page.locator('.receipt')
    const states = (all: Element[]) => all.map((one) => one.getAttribute('data-state'))
    expect(await receipts.evaluateAll(states)).toEqual(['simulated', 'simulated'])
    const exchange = receipts.first().locator('[data-box="exchange"]')
    expect(await exchange.getAttribute('data-state')).toBe('holds')
    expect(await exchange.textContent()).toMatch(
      /client_request_digest.*client_response_digest|client_response_digest.*client_request_digest/,
    )
    expect(await page.locator('.answer').first().innerText()).toContain(
      'Hello from the stand-in provider',
    )
    const sent = bodies.filter(({ path }) => path === '/v1/chat/completions')
    expect(sent.map(({ key }) => /^[0-9a-f]{64}$/.test(key))).toEqual([true, true])
    expect(sent.map(({ body }) => body).join()).not.toMatch(/secret|messages|glm-5/)
  })

  test('says why an answer did not come', async () => {
    await page.getByLabel('API key').fill('cmr_nobody_0_0')
    await page.getByLabel('Your message').fill('Hello?')
    await page.getByRole('button', { name: 'Send' }).click()
    await expect
      .poll(() => page.locator('.chat [role="alert"]').allInnerTexts(), { timeout: 30_000 })
      .toEqual(['The API key is not valid.'])
    const kept = () => localStorage.length + sessionStorage.length + document.cookie.length
    expect(await page.evaluate(kept)).toBe(0)
  })

  test.each([
    ['a desk, light', { width: 1280, height: 900 }, 'light'],
    ['a phone, dark', { width: 390, height: 844 }, 'dark'],
  ] as const)(
    'on %s, everything has a name and contrast, and nothing runs out of the screen',
    async (_name, viewport, colorScheme) => {
      await page.setViewportSize(viewport)
      await page.emulateMedia({ colorScheme })
      expect(await faultsOf(page)).toEqual([])
    },
  )

  test('requests go to the router alone, and no policy is violated', () => {
    expect([...addresses]).toEqual([stack.local.base_url])
    const expected = /status of 40[14]/
    expect(complaints.filter((text) => !expected.test(text))).toEqual([])
  })
})
