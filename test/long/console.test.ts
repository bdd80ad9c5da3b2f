import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { buildConsolePage } from '../../src/cli/build/browser-page.ts'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { CHROMIUM, launchChromium } from '../support/chromium.ts'
import { faultsOf } from '../support/page-audit.ts'
import { startStack, temporaryDirectory, type Stack } from '../support/stack.ts'

/** The console and the playground, as the router serves them, in a real browser. */

const BUILT = join(PROJECT_DIR, 'dist/console.html')
const VIEWS = [
  ['Overview', 'Now'],
  ['Routes', 'Routes'],
  ['Providers', 'Providers'],
  ['Customers', 'Customers'],
  ['Requests', 'One request'],
  ['Webhooks', 'Webhooks'],
  ['Audit', 'Audit log'],
  ['Proof', "The router's own proof"],
] as const

const historySchema = z.object({
  data: z.array(
    z.object({ requests: z.number(), prompt_tokens: z.number(), cost_eur: z.string() }),
  ),
})
const usageSchema = z.object({
  data: z.array(z.object({ id: z.string(), receipt_id: z.string() })),
})

const NONE = { alerts: [], faults: [] }

/** The links to views of which a part is to the right of the window. */
function tabsOutOfView(): (string | null)[] {
  return [...document.querySelectorAll('.views a')]
    .filter((link) => link.getBoundingClientRect().right > innerWidth)
    .map(({ textContent }) => textContent)
}

let stack: Stack

beforeAll(async () => {
  if (!existsSync(BUILT)) mkdirSync(join(PROJECT_DIR, 'dist'), { recursive: true })
  writeFileSync(BUILT, await buildConsolePage(join(PROJECT_DIR, 'src')))
  stack = await startStack({ stateDir: temporaryDirectory() })
  const models = ['glm-5', 'glm-5', 'no-such-model']
  for (const model of models) {
    await stack.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
    })
  }
}, 180_000)
afterAll(async () => {
  await stack?.stop()
  if (stack !== undefined) rmSync(stack.stateDir, { recursive: true, force: true })
})

async function admin<Schema extends z.ZodType>(path: string, schema: Schema) {
  const headers = { authorization: `Bearer ${stack.local.admin_token}` }
  return schema.parse(await (await fetch(stack.local.base_url + path, { headers })).json())
}

/** What the history of the last day adds up to. */
async function totals() {
  const { data } = await admin('/admin/history', historySchema)
  const sum = (values: readonly number[]) => values.reduce((one, other) => one + other, 0)
  return {
    requests: sum(data.map(({ requests }) => requests)),
    tokens: sum(data.map((step) => step.prompt_tokens)),
    cost: sum(data.map((step) => Number(step.cost_eur))),
  }
}

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
  let context: BrowserContext
  let page: Page
  const complaints: string[] = []
  const addresses = new Set<string>()

  /** Everything that a page says or asks is kept, to be looked at in the end. */
  async function openPage(options: Parameters<Browser['newContext']>[0] = {}) {
    context = await browser.newContext(options)
    page = await context.newPage()
    page.setDefaultTimeout(30_000)
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('request', (request) => addresses.add(new URL(request.url()).origin))
    await page.addInitScript(() => {
      addEventListener('securitypolicyviolation', ({ violatedDirective }) =>
        console.error(`policy violated: ${violatedDirective}`),
      )
    })
  }

  async function signIn() {
    await page.goto(`${stack.local.base_url}/console`)
    await page.getByLabel('Admin token').fill(stack.local.admin_token)
    await page.getByLabel('Admin token').press('Enter')
    await page.getByRole('heading', { name: 'Now' }).waitFor()
  }

  const goTo = async (name: string, heading: string) => {
    await page.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { name: heading, exact: true }).waitFor()
  }

  beforeAll(async () => {
    browser = await launchChromium()
    await openPage()
  }, 60_000)
  afterAll(() => browser?.close())

  test('a wrong token is refused by name; the right one begins a session that no script can read', async () => {
    await page.goto(`${stack.local.base_url}/console`)
    const token = page.getByLabel('Admin token')
    await token.fill('wrong')
    await token.press('Enter')
    await page.getByText('This is not an admin token of this router.').waitFor()
    await page.reload()
    // As a program shows a token that it cut: no header can carry it.
    await token.fill('cmra_…')
    await token.press('Enter')
    await page.getByText('This is not an admin token of this router.').waitFor()
    await token.fill(stack.local.admin_token)
    await token.press('Enter')
    await page.getByRole('heading', { name: 'Now' }).waitFor()
    const [cookie, ...more] = await context.cookies()
    expect(more).toEqual([])
    expect(cookie).toMatchObject({ name: 'cmr_console', httpOnly: true, sameSite: 'Strict' })
    const readable = () => [document.cookie, localStorage.length, sessionStorage.length]
    expect(await page.evaluate(readable)).toEqual(['', 0, 0])
    // A reload stays signed in, by the cookie alone.
    await page.reload()
    await page.getByRole('heading', { name: 'Now' }).waitFor()
  })

  test('the overview draws curves of the stored history, and tells them in words', async () => {
    await page.getByText('all well').first().waitFor()
    await expect
      .poll(() => page.locator('.plot').first().innerText(), { timeout: 60_000 })
      .toMatch(/all\s+3\s/)
    expect(await page.locator('.plot canvas').count()).toBe(7)
    await page.getByText('404 model_not_found').first().waitFor()
    expect(await page.locator('.sums').innerText()).toMatch(/Requests\s+3[^]*Billed\s+€ 0\.000/)
    await page.locator('.values summary').first().click()
    await page.getByRole('columnheader', { name: 'refused (4xx)' }).waitFor()
    await page.getByLabel('Time shown').selectOption('1 hour')
    await page.getByText('per minute').first().waitFor()
  }, 90_000)

  test('routes have price and proof, providers each check of their evidence', async () => {
    await goTo('Routes', 'Routes')
    const row = page.getByRole('row').filter({ hasText: 'standin/glm-5' }).first()
    expect(await row.innerText()).toMatch(/active[^]*€ 0\.6 in[^]*verified[^]*simulated[^]*ago/)
    await goTo('Providers', 'Providers')
    const card = page.getByRole('article', { name: 'standin', exact: true })
    await card.getByText(/\d+ checks hold/).click()
    for (const name of ['nonce', 'tls key', 'report signature', 'trust bundle signature']) {
      await card.getByRole('listitem').filter({ hasText: name }).first().waitFor()
    }
  })

  test('a long name is wrapped, so that plan and balance stay in view', async () => {
    const made = await fetch(`${stack.local.base_url}/admin/customers`, {
      method: 'POST',
      headers: { authorization: `Bearer ${stack.local.admin_token}` },
      body: JSON.stringify({ name: 'x'.repeat(120), billing: 'postpaid' }),
    })
    expect(made.status).toBe(200)
    await goTo('Customers', 'Customers')
    await page.getByRole('link', { name: 'x'.repeat(120) }).waitFor()
    const table = page.locator('.panel .scroll')
    expect(await table.evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0)
  })

  test('a customer has balance, keys and spend, and leads from a key to a receipt', async () => {
    const { data } = usageSchema.parse(await (await stack.fetch('/v1/usage')).json())
    await goTo('Customers', 'Customers')
    await page
      .getByRole('row')
      .filter({ hasText: stack.local.customer_id })
      .getByRole('link')
      .click()
    await page.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
    await page.getByText('all keys').first().waitFor()
    await page.getByRole('link', { name: data[0]?.id ?? '' }).click()
    await page.getByRole('heading', { name: 'One request' }).waitFor()
    await page.getByText(data[0]?.receipt_id ?? 'none').waitFor()
    const steps = await page.locator('.steps').innerText()
    expect(steps).toContain(stack.local.api_key.split('_').slice(0, 3).join('_'))
    expect(steps).not.toContain(stack.local.api_key)
    expect(steps).toMatch(
      /Bill[^]*settled[^]*standin\/glm-5[^]*Receipt[^]*stored[^]*Vouched for by/,
    )
  })

  test('an invalid id, and a list without rows, are shown as messages', async () => {
    await page.getByLabel(/^Id of the request/).fill('nobody')
    await page.keyboard.press('Enter')
    await page.getByText('The ledger has no such request.').waitFor()
    await goTo('Webhooks', 'Webhooks')
    await page.getByText('Nothing was reported yet').waitFor()
    expect(await page.getByRole('table').count()).toBe(0)
  })

  test('the audit log has who signed in, and a long entry leaves the results in view', async () => {
    const models = Array.from({ length: 100 }, () => 'standin/glm-5')
    const { base_url: base, admin_token: token, customer_id: customer } = stack.local
    const created = await fetch(`${base}/admin/customers/${customer}/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'many', models }),
    })
    expect(created.status).toBe(200)
    await goTo('Audit', 'Audit log')
    const row = page.getByRole('row').filter({ hasText: 'session.begin' }).first()
    expect(await row.innerText()).toMatch(/boot[^]*session\.begin[^]*done/)
    const long = page.getByRole('row').filter({ hasText: JSON.stringify(models) })
    await expect(long.innerText()).resolves.toMatch(/keys\.create[^]*done/)
    const hidden = await page
      .locator('.scroll')
      .evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)
    expect(hidden).toBe(0)
  })

  test("the router's own proof is verified, check by check", async () => {
    await goTo('Proof', "The router's own proof")
    await page
      .getByLabel('Release root (public JWK)')
      .fill(readFileSync(stack.local.root_key, 'utf8'))
    await page.getByLabel('Accept a simulated platform').check()
    await page.getByRole('button', { name: 'Verify' }).click()
    await page.getByText('VALID ON A SIMULATED PLATFORM').first().waitFor()
    expect(await page.locator('[data-box][data-state="failed"]').count()).toBe(0)
  })

  test('the keyboard alone reaches every view, in the order of the page', async () => {
    await page.goto(`${stack.local.base_url}/console`)
    await page.getByRole('heading', { name: 'Now' }).waitFor()
    const focused = () =>
      page.evaluate(() => {
        const { activeElement: element, body } = document
        return element === body ? '' : (element?.textContent?.trim() ?? '')
      })
    await expect.poll(focused).toBe('Now')
    // From the heading, which has the focus, to the end of the page and on to its beginning.
    for (let count = 0; count < 60 && (await focused()) !== 'Skip to the content'; count++) {
      await page.keyboard.press('Tab')
    }
    const order = [await focused()]
    while (order.length < VIEWS.length + 3) {
      await page.keyboard.press('Tab')
      order.push(await focused())
    }
    expect(order).toEqual([
      'Skip to the content',
      'Playground',
      ...VIEWS.map(([name]) => name),
      'Sign out',
    ])
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Audit log' }).waitFor()
    // The heading of the view has the focus, so that a screen reader goes on there.
    await expect.poll(focused).toBe('Audit log')
  })

  test.each([
    ['a desk, light', { width: 1280, height: 900 }, 'light'],
    ['a desk, dark', { width: 1280, height: 900 }, 'dark'],
    ['a phone, light', { width: 390, height: 844 }, 'light'],
    ['a phone, dark', { width: 390, height: 844 }, 'dark'],
  ] as const)(
    'on %s, everything has a name and contrast, and nothing runs out of the screen',
    async (_name, viewport, colorScheme) => {
      await context.close()
      await openPage({ viewport, colorScheme })
      await signIn()
      for (const [name, heading] of VIEWS) {
        await goTo(name, heading)
        await expect.poll(() => page.getByText('Loading …').count(), { timeout: 30_000 }).toBe(0)
        const alerts = await page.getByRole('alert').allInnerTexts()
        expect({ name, alerts, faults: await faultsOf(page) }).toEqual({ name, ...NONE })
        expect(await page.evaluate(tabsOutOfView)).toEqual([])
      }
    },
    120_000,
  )

  test('a router that does not answer is reported, and the last values stay', async () => {
    await page.goto(`${stack.local.base_url}/console`)
    await goTo('Routes', 'Routes')
    await page.getByRole('row').filter({ hasText: 'standin/glm-5' }).first().waitFor()
    await page.route('**/admin/**', (route) => route.abort())
    await page.getByText('The router does not answer. What is shown is from before.').waitFor()
    expect(
      await page.getByRole('row').filter({ hasText: 'standin/glm-5' }).count(),
    ).toBeGreaterThan(0)
    await page.unroute('**/admin/**')
  }, 60_000)

  test('signing out ends the session for the router too', async () => {
    const [cookie] = await context.cookies()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    expect(await context.cookies()).toEqual([])
    const headers = { cookie: `${cookie?.name}=${cookie?.value}`, 'x-cmr-console': '1' }
    const answer = await fetch(`${stack.local.base_url}/admin/tokens`, { headers })
    expect([answer.status, await answer.json()]).toMatchObject([
      401,
      { error: { code: 'session_ended' } },
    ])
  })

  test('a session that is over is called that, not a wrong token', async () => {
    await signIn()
    await context.clearCookies()
    const signInAgain = page.getByLabel('Admin token').waitFor()
    // The page asks by itself, too, and may notice before the click.
    const click = page.getByRole('link', { name: 'Routes', exact: true }).click()
    await Promise.race([click, signInAgain])
    await signInAgain
    expect(await page.getByRole('status').innerText()).toBe(
      'Your session has ended. Sign in again.',
    )
  })

  test('requests go to the router alone, and no policy is violated', () => {
    expect([...addresses]).toEqual([stack.local.base_url])
    const expected = /status of 40[14]|net::ERR_FAILED/
    expect(complaints.filter((text) => !expected.test(text))).toEqual([])
  })
})

describe('the history', () => {
  test('is there again when the router has been restarted', async () => {
    await expect.poll(async () => (await totals()).requests, { timeout: 60_000 }).toBeGreaterThan(2)
    await expect.poll(async () => (await totals()).tokens, { timeout: 60_000 }).toBeGreaterThan(0)
    // What is counted is stored five seconds behind it.
    let before = await totals()
    await expect
      .poll(
        async () => {
          const last = before
          before = await totals()
          return JSON.stringify(before) === JSON.stringify(last)
        },
        { timeout: 60_000, interval: 7_000 },
      )
      .toBe(true)
    await stack.stop()
    stack = await startStack({ stateDir: stack.stateDir })
    expect(await totals()).toEqual(before)
  }, 180_000)
})
