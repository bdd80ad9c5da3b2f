import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { buildVerifierPage } from '../../../src/cli/build/browser-page.ts'
import { PROJECT_DIR } from '../../../src/host/stack/settings.ts'

const packageSchema = z.object({ dependencies: z.record(z.string(), z.string()).optional() })

/** What the page is made of. */
const PARTS = ['browser', 'client', 'protocol', 'verify']
const PACKAGES = ['preact', 'zod', 'cborg', '@noble/hashes', '@noble/curves', '@phala/dcap-qvl']

let folder: string
let page: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cmr-verifier-'))
  page = await buildVerifierPage(join(PROJECT_DIR, 'src'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** These packages and what they depend on, as far as it is installed beside them. */
function closureOf(names: readonly string[], found = new Set<string>()): Set<string> {
  for (const name of names) {
    const manifest = join(PROJECT_DIR, 'node_modules', name, 'package.json')
    if (found.has(name) || !existsSync(manifest)) continue
    found.add(name)
    const { dependencies = {} } = packageSchema.parse(JSON.parse(readFileSync(manifest, 'utf8')))
    closureOf(Object.keys(dependencies), found)
  }
  return found
}

/** A checkout of its own at a path below the test's folder. */
function checkout(path: string): string {
  const target = join(folder, path)
  mkdirSync(target, { recursive: true })
  for (const part of PARTS) {
    cpSync(join(PROJECT_DIR, 'src', part), join(target, 'src', part), { recursive: true })
  }
  cpSync(join(PROJECT_DIR, 'package.json'), join(target, 'package.json'))
  for (const name of closureOf(PACKAGES)) {
    cpSync(join(PROJECT_DIR, 'node_modules', name), join(target, 'node_modules', name), {
      recursive: true,
    })
  }
  return join(target, 'src')
}

describe('the verifier page', () => {
  test('is the same bytes wherever it is built', { timeout: 120_000 }, async () => {
    const elsewhere = await buildVerifierPage(checkout('some/where/else'))
    const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
    expect(sha256(elsewhere)).toBe(sha256(page))
    expect(page).not.toContain(PROJECT_DIR)
  })

  test('loads nothing: its policy allows its own script and style, and questions to a router', () => {
    const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(page)?.[1] ?? ''
    const element = (name: string) =>
      new RegExp(`<${name}[^>]*>([^]*?)</${name}>`).exec(
        page.slice(page.indexOf('<style>')),
      )?.[1] ?? ''
    const source = (text: string) =>
      `'sha256-${createHash('sha256').update(text).digest('base64')}'`
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      `script-src ${source(element('script'))}`,
      `style-src ${source(element('style'))}`,
      'connect-src https: http://127.0.0.1:* http://localhost:*',
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ])
    // The policy must come before everything that it is about.
    expect(page.indexOf('Content-Security-Policy')).toBeLessThan(page.indexOf('<style>'))
    const markup = page
      .replace('<link rel="icon" href="data:," />', '')
      .replace(/<(script|style)[^>]*>[^]*?<\/\1>/g, '')
    expect(markup).not.toMatch(/\b(src|href|action|style|on\w+)=/)
  })

  test('is small enough to be sent by mail', () => {
    const kilobytes = Math.round(page.length / 1024)
    console.log(`verifier page: ${kilobytes} KiB`)
    expect(kilobytes).toBeLessThan(1000)
  })
})
