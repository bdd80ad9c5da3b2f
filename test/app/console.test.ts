import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildConsolePage } from '../../src/cli/build/browser-page.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { CHROMIUM, launchChromium } from '../support/chromium.ts'
import { startStack, type Stack } from '../support/stack.ts'

/** The console and the playground, as the router serves them, in a real browser. */

const BUILT = join(PROJECT_DIR, 'dist/console.html')

let stack: Stack

beforeAll(async () => {
  if (!existsSync(BUILT)) mkdirSync(join(PROJECT_DIR, 'dist'), { recursive: true })
  writeFileSync(BUILT, await buildConsolePage(join(PROJECT_DIR, 'src')))
  stack = await startStack()
}, 120_000)
afterAll(() => stack?.stop())

describe('the page of the console', () => {
  test('is served under a policy of its own, to no frame, and without a token', async () => {
    for (const path of ['/console', '/console/try']) {
      const answer = await fetch(stack.local.base_url + path)
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
      const policy = answer.headers.get('content-security-policy') ?? ''
      expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-/)
      expect(policy).toContain("connect-src 'self'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toMatch(/unsafe|https?:/)
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      expect(answer.headers.get('set-cookie')).toBeNull()
      const text = await answer.text()
      expect(text).toBe(readFileSync(BUILT, 'utf8'))
      expect(text).not.toContain(stack.local.admin_token)
    }
  })

  test('loads under 200 KiB compressed, and nothing beside itself', () => {
    const kilobytes = gzipSync(readFileSync(BUILT)).length / 1024
    console.log(`console: ${kilobytes.toFixed(1)} KiB, compressed`)
    expect(kilobytes).toBeLessThan(200)
  })
})

describe.skipIf(CHROMIUM === undefined)('in headless Chromium, where it is installed', () => {
  let browser: Browser
  let page: Page
  const complaints: string[] = []
  const addresses = new Set<string>()

  beforeAll(async () => {
    browser = await launchChromium()
    page = await browser.newPage()
    page.setDefaultTimeout(10_000)
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('request', (request) => addresses.add(new URL(request.url()).origin))
  }, 120_000)
  afterAll(() => browser?.close())

  test('the console refuses a wrong token by name, and shows what is there for the right one', async () => {
    await page.goto(`${stack.local.base_url}/console`)
    const token = page.getByLabel('Admin token')
    await token.fill('wrong')
    await token.press('Enter')
    await page.getByText('This is not an admin token of this router.').waitFor()
    await token.fill(stack.local.admin_token)
    await token.press('Enter')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Routes' }).click()
    await page
      .getByRole('cell', { name: /standin\/glm-5/ })
      .first()
      .waitFor()
    await page.getByRole('button', { name: 'Providers' }).click()
    await page.getByRole('cell', { name: 'standin', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Customers' }).click()
    await page.getByRole('cell', { name: stack.local.customer_id }).waitFor()
    await page.getByRole('button', { name: 'Webhooks' }).click()
    await page.getByText('None.').waitFor()
    expect(await page.getByRole('alert').allInnerTexts()).toEqual([])
  })

  test("the console verifies the router's own proof, check by check", async () => {
    await page.getByRole('button', { name: 'Proof' }).click()
    await page
      .getByLabel('Release root (public JWK)')
      .fill(readFileSync(stack.local.root_key, 'utf8'))
    await page.getByLabel('Accept a simulated platform').check()
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByText('VALID ON A SIMULATED PLATFORM').first().waitFor()
    expect(await page.locator('[data-box][data-state="failed"]').count()).toBe(0)
  })

  test('the console draws curves of what it counted, and tells them in words', async () => {
    await page.getByRole('button', { name: 'Overview' }).click()
    await expect
      .poll(() => page.locator('.plot').first().innerText(), { timeout: 30_000 })
      .toMatch(/all\s+\d/)
    expect(await page.locator('.plot canvas').count()).toBe(4)
  }, 120_000)

  test('signing out forgets the token', async () => {
    await page.getByRole('button', { name: 'Sign out' }).click()
    expect(await page.getByLabel('Admin token').inputValue()).toBe('')
    const kept = await page.evaluate(
      () => localStorage.length + sessionStorage.length + document.cookie.length,
    )
    expect(kept).toBe(0)
  })

  test('every answer of the playground shows its verified receipt, about the bytes that were sent and got', async () => {
    await page.goto(`${stack.local.base_url}/console/try`)
    await page.getByLabel('API key').fill(stack.local.api_key)
    await page.getByLabel('Model', { exact: true }).selectOption('glm-5')
    await page
      .getByLabel('Release root (public JWK)')
      .fill(readFileSync(stack.local.root_key, 'utf8'))
    await page.getByLabel('Accept a simulated platform').check()
    for (const question of ['Hello!', 'And again?']) {
      await page.getByLabel('Your message').fill(question)
      await page.getByRole('button', { name: 'Send' }).click()
      await page
        .locator('.receipt')
        .nth(question === 'Hello!' ? 0 : 1)
        .waitFor()
    }
    const receipts = page.locator('.receipt')
    expect(
      await receipts.evaluateAll((all) => all.map((one) => one.getAttribute('data-state'))),
    ).toEqual(['simulated', 'simulated'])
    const exchange = receipts.first().locator('[data-box="exchange"]')
    expect(await exchange.getAttribute('data-state')).toBe('holds')
    expect(await exchange.textContent()).toMatch(
      /client_request_digest.*client_response_digest|client_response_digest.*client_request_digest/,
    )
    expect(await page.locator('.answer').first().innerText()).toContain(
      'Hello from the stand-in provider',
    )
  })

  test('the playground says why an answer did not come', async () => {
    await page.getByLabel('API key').fill('cmr_nobody_0_0')
    await page.getByLabel('Your message').fill('Hello?')
    await page.getByRole('button', { name: 'Send' }).click()
    await expect.poll(() => page.locator('.chat [role="alert"]').count()).toBe(1)
  })

  test('asks nobody but the router, and breaks no policy', () => {
    expect([...addresses]).toEqual([stack.local.base_url])
    const expected = /status of (401|404)/
    expect(complaints.filter((text) => !expected.test(text))).toEqual([])
  })
})
