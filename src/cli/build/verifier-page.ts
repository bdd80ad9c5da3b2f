import { build, type BuildOptions } from 'esbuild'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const OPTIONS = {
  bundle: true,
  minify: true,
  charset: 'utf8',
  legalComments: 'none',
  platform: 'browser',
  format: 'esm',
  target: ['es2022'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  define: { 'process.env.NODE_ENV': '"production"' },
  // Not the one that happens to lie above the sources.
  tsconfigRaw: {},
  write: false,
  logLevel: 'error',
} satisfies BuildOptions

/**
 * Makes the verifier page: one HTML file that needs nothing beside it. The same sources and packages give the same bytes.
 * Its content security policy names its own script and style by their digests, and forbids everything else but to ask a
 * router; the page itself narrows that to the one router that its user names.
 * @param sources the directory of sources
 */
export async function buildVerifierPage(sources: string): Promise<string> {
  const folder = join(resolve(sources), 'browser/verifier')
  const part = async (name: string) => {
    const entry = { absWorkingDir: resolve(sources), entryPoints: [join(folder, name)] }
    const { outputFiles } = await build({ ...OPTIONS, ...entry })
    return (outputFiles[0]?.text ?? '').trim()
  }
  const [script, style] = [await part('main.tsx'), await part('page.css')]
  const elements: Readonly<Record<string, string>> = {
    policy: `<meta http-equiv="Content-Security-Policy" content="${policy(script, style)}">`,
    style: `<style>${style}</style>`,
    script: `<script type="module">${script}</script>`,
  }
  const template = readFileSync(join(folder, 'page.html'), 'utf8')
  return template.replaceAll(/<!--(\w+)-->/g, (_match, name: string) => elements[name] ?? '')
}

function policy(script: string, style: string): string {
  return [
    "default-src 'none'",
    `script-src '${sourceHash(script)}'`,
    `style-src '${sourceHash(style)}'`,
    'connect-src https: http://127.0.0.1:* http://localhost:*',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

/** A CSP hash source over the exact text of an element. */
const sourceHash = (text: string): string =>
  `sha256-${createHash('sha256').update(text).digest('base64')}`
