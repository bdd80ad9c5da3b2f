import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { PROJECT_DIR } from '../../src/host/stack/settings.ts'
import { encodeKeyConfig } from '../../src/protocol/hpke-key-config.ts'
import { CHROMIUM, launchChromium } from '../support/chromium.ts'
import { examplesOf } from '../support/docs-examples.ts'
import { inPart } from '../support/document-tamperings.ts'
import { listen } from '../support/listen.ts'
import { startStack, type Stack } from '../support/stack.ts'

/**
 * The client library in a page: the browser build, bundled as applications bundle it, in headless Chromium against a running
 * router of another origin. The page is the example of docs/client.md.
 */

let stack: Stack
let browser: Browser
let server: Server
let origin: string

const [example] = examplesOf('client.md').filter(({ heading }) => heading === 'Browsers')

async function script(): Promise<string> {
  const { api_key: apiKey, base_url: router, root_key: root } = stack.local
  const rootKey = readFileSync(root, 'utf8')
  const code = (example?.code ?? '').replace(
    'createClient({',
    'createClient({ policy: { allowSimulated: true },',
  )
  const told = code.replace(/(const client[^]*)/, 'try { $1 } catch (error) { report(error) }')
  const { outputFiles } = await build({
    stdin: { contents: told, resolveDir: PROJECT_DIR },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    alias: { 'confidential-model-router/client': join(PROJECT_DIR, 'src/client/browser.ts') },
    define: { router: JSON.stringify(router), apiKey: JSON.stringify(apiKey), rootKey },
    banner: {
      js: 'const report = ({ code, failed }) => { document.body.textContent = `${code}: ${failed}` }',
    },
  })
  return outputFiles[0]?.text ?? ''
}

describe.skipIf(CHROMIUM === undefined)('the client in a page, in headless Chromium', () => {
  beforeAll(async () => {
    let bundle = ''
    server = createServer(({ url }, response) => {
      const isScript = url === '/app.js'
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
      response.end(
        isScript ? bundle : '<!doctype html><body><script type=module src=/app.js></script>',
      )
    })
    origin = `http://127.0.0.1:${await listen(server)}`
    ;[stack, browser] = await Promise.all([
      startStack({ config: configFor(origin) }),
      launchChromium(),
    ])
    bundle = await script()
  }, 120_000)
  afterAll(async () => {
    server.close()
    await browser?.close()
    await stack?.stop()
  })

  /** What the page shows in the end, and every body that it sent. */
  async function visit(prepare: (page: Page) => Promise<unknown> = async () => {}) {
    const context = await browser.newContext()
    const page = await context.newPage()
    const sent: { readonly path: string; readonly body: Buffer }[] = []
    page.on('request', (request) => {
      const { pathname } = new URL(request.url())
      const body = request.postDataBuffer()
      if (body !== null) sent.push({ path: pathname, body })
    })
    await prepare(page)
    await page.goto(origin)
    await page.waitForFunction(() => document.body.textContent.trim() !== '', null, {
      timeout: 60_000,
    })
    const text = await page.locator('body').innerText()
    const kept = await page.evaluate(() => Object.keys(localStorage))
    await context.close()
    return { text, sent, kept }
  }

  test('proves the router, encrypts the question, and verifies the receipt', async () => {
    const { kept, sent, text } = await visit()
    expect(text).toContain('You said: Hello!')
    expect(sent.map(({ path }) => path)).toEqual(['/v1/chat/completions'])
    expect(sent[0]?.body.length).toBeGreaterThan(50)
    expect(sent[0]?.body.includes('Hello!')).toBe(false)
    expect(kept).toEqual([expect.stringMatching(/^confidential-model-router\/trust-bundle\//)])
  })

  test.each([
    ['/.well-known/trust.json', 'trust_bundle_signature', inPart('trust_bundle_jws', 2)],
    [
      '/attestation',
      'workload_identity_tag',
      (text: string) => text.replace(/"workload_identity_tag":"(.)/, swapFirst),
    ],
    [
      '/.well-known/hpke-keys',
      'hpke_key',
      () => Buffer.from(encodeKeyConfig(crypto.getRandomValues(new Uint8Array(32)))),
    ],
  ])('sends nothing where %s is not what it was: %s', async (path, failed, change) => {
    const { sent, text } = await visit((page) =>
      page.route(
        (url) => url.pathname === path,
        async (route) => {
          const answer = await route.fetch()
          await route.fulfill({ response: answer, body: change(await answer.text()) })
        },
      ),
    )
    expect(text).toMatch(/^attestation_refused: /)
    expect(text).toContain(failed)
    expect(sent).toEqual([])
  })
})

const swapFirst = (all: string, first: string) => all.slice(0, -1) + (first === '1' ? '2' : '1')

/** The local configuration, for pages of this origin. */
function configFor(allowed: string): unknown {
  const config = z
    .looseObject({ service: z.looseObject({}) })
    .parse(JSON.parse(readFileSync(join(PROJECT_DIR, 'config/local.json'), 'utf8')))
  return { ...config, service: { ...config.service, cors_origins: [allowed] } }
}
