import { readFileSync } from 'node:fs'
import type { APIResponse, BrowserContext, Page } from 'playwright-core'
import type { LocalFile } from '../../src/host/stack/local-file.ts'
import { completionIn } from './answers.ts'
import type { Stack } from './stack.ts'

/** The verifier page as a user operates it. */

/** The result of one exchange with the stack. */
export interface Answered {
  readonly answer: string
  /** As `GET /v1/receipts/{id}` returns it. */
  readonly receipt: string
  readonly id: string
}

/** Has a chat request answered, and gets its receipt. */
export async function askOnce(stack: Stack, body: string): Promise<Answered> {
  const headers = { 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body }
  const answer = await (await stack.fetch('/v1/chat/completions', init)).text()
  const id = completionIn(answer).service.receipt_id ?? ''
  const receipt = await (await stack.fetch(`/v1/receipts/${id}`)).text()
  return { answer, receipt, id }
}

/** Names a local router, its release root, and that it is a simulated one. */
export async function fillTrustInto(
  page: Page,
  { base_url: router, root_key: root }: Pick<LocalFile, 'base_url' | 'root_key'>,
): Promise<void> {
  await page.getByLabel('Router', { exact: true }).fill(router)
  await page.getByLabel('Release root (public JWK)').fill(readFileSync(root, 'utf8'))
  const simulated = page.getByLabel('Accept a simulated platform')
  if (!(await simulated.isVisible())) await page.getByText('What you demand').click()
  await simulated.check()
}

/** Presses the button and waits for the line with the verdict. */
export async function pressVerify(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Verify' }).click()
  await page.locator('.outcome[aria-busy="false"] .verdict').waitFor()
  return page.locator('.verdict h2').innerText()
}

/** The boxes of the picture that are in a given state. */
export function boxesIn(page: Page, state: string): Promise<string[]> {
  return page
    .locator(`[data-box][data-state="${state}"]`)
    .evaluateAll((found) => found.map((box) => box.getAttribute('data-box') ?? ''))
}

interface Answer {
  readonly status: number
  readonly text: string
}

/** Changes what the router answers at a path for as long as some work takes, and throws if nothing was requested there. */
export type Tamper = <Value>(
  path: string | RegExp,
  change: (text: string) => string | Buffer,
  work: () => Promise<Value>,
) => Promise<Value>

/** Honest answers are cached by their address, because a router makes few reports a minute for one caller. */
export function createTamperer(contextOf: () => BrowserContext): Tamper {
  const known = new Map<string, Answer>()
  return async (path, change, work) => {
    const context = contextOf()
    const at = (url: URL) =>
      typeof path === 'string' ? url.pathname === path : path.test(url.pathname)
    let changed = 0
    await context.route(at, async (route) => {
      if (route.request().method() === 'OPTIONS') return route.continue()
      const url = route.request().url()
      const { status, text } = known.get(url) ?? (await answerOf(await route.fetch()))
      known.set(url, { status, text })
      changed += 1
      const headers = { 'access-control-allow-origin': '*', 'content-type': 'application/json' }
      return route.fulfill({ status, headers, body: change(text) })
    })
    try {
      return await work()
    } finally {
      await context.unroute(at)
      if (changed === 0) console.error(`nothing was asked at ${path.toString()}`)
    }
  }
}

async function answerOf(response: APIResponse): Promise<Answer> {
  return { status: response.status(), text: await response.text() }
}
