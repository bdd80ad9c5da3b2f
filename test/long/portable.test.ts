import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Miniflare, convertV4MiniflareOptions } from 'miniflare'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { CHROMIUM } from '../support/chromium.ts'
import { bundlePortableSuite } from '../support/portable-suite.ts'
import { listen } from '../support/listen.ts'

/** The whole suite, keys of 4096 bits included, on a busy machine. */
const TIMEOUT_MS = 180_000

const outcomesSchema = z.array(z.object({ title: z.string(), failure: z.string().optional() }))

/** The suite has more; one that could not load its files would have none. */
const LEAST_TESTS = 130

function expectComplete(outcomes: z.output<typeof outcomesSchema>): void {
  expect(outcomes.filter(({ failure }) => failure !== undefined)).toEqual([])
  expect(outcomes.length).toBeGreaterThan(LEAST_TESTS)
}

describe('the library passes its suite', () => {
  test('in workerd', { timeout: TIMEOUT_MS }, async () => {
    const script = await bundlePortableSuite(`
      import { runSuite } from 'portable-suite'
      export default { fetch: async () => Response.json(await runSuite()) }`)
    const miniflare = new Miniflare(
      convertV4MiniflareOptions({
        host: '127.0.0.1',
        modules: [{ type: 'ESModule', path: 'suite.js', contents: script }],
        modulesRoot: '/',
        compatibilityDate: '2026-11-17',
      }),
    )
    try {
      const answer = await miniflare.dispatchFetch('http://suite.test/')
      expectComplete(outcomesSchema.parse(await answer.json()))
    } finally {
      await miniflare.dispose()
    }
  })

  test.skipIf(CHROMIUM === undefined)(
    'in headless Chromium, where it is installed',
    { timeout: TIMEOUT_MS },
    async () => {
      const script = await bundlePortableSuite(`
        import { runSuite } from 'portable-suite'
        const outcomes = await runSuite().catch((error) => [{ title: 'suite', failure: String(error) }])
        await fetch('/outcomes', { method: 'POST', body: JSON.stringify(outcomes) })`)
      expectComplete(outcomesSchema.parse(await runInChromium(script)))
    },
  )
})

/** Serves a page with the script to a browser of its own, and waits for what the script posts back. */
async function runInChromium(script: string): Promise<unknown> {
  const { promise: posted, resolve, reject } = Promise.withResolvers<unknown>()
  const server = servePage(script, resolve)
  const port = await listen(server)
  const profile = await mkdtemp(join(tmpdir(), 'cmr-chromium-'))
  const browser = spawn(CHROMIUM ?? '', [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    `--user-data-dir=${profile}`,
    `http://127.0.0.1:${port}/`,
  ])
  browser.on('error', reject)
  browser.on('exit', (code) => reject(new Error(`Chromium ended with ${code}`)))
  const ended = once(browser, 'exit')
  try {
    return await posted
  } finally {
    browser.kill('SIGKILL')
    await ended
    server.closeAllConnections()
    server.close()
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

function servePage(script: string, posted: (outcomes: unknown) => void): Server {
  const pages: Record<string, [type: string, body: string]> = {
    '/': ['text/html', '<!doctype html><script type="module" src="/suite.js"></script>'],
    '/suite.js': ['text/javascript', script],
  }
  return createServer((request, response) => {
    const page = pages[request.url ?? '']
    if (request.method === 'POST') {
      response.end()
      posted(readText(request).then((text) => JSON.parse(text) as unknown))
    } else if (page === undefined) {
      response.writeHead(404).end()
    } else response.writeHead(200, { 'content-type': page[0] }).end(page[1])
  })
}

async function readText(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(Buffer.from(part))
  return Buffer.concat(parts).toString()
}
