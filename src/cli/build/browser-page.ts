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
  // Ignores any tsconfig above the sources.
  tsconfigRaw: {},
  write: false,
  logLevel: 'error',
} satisfies BuildOptions

/** The properties of a page. */
interface PageKind {
  /** Its folder below `browser`. */
  readonly folder: string
  readonly title: string
  /** Shown where scripts are disabled. */
  readonly noscript: string
  /** `connect-src` of its content security policy. */
  readonly connect: string
}

const VERIFIER: PageKind = {
  folder: 'verifier',
  title: 'Verifier',
  noscript: 'This page verifies with JavaScript, in your browser alone. Please allow it.',
  connect: 'https: http://127.0.0.1:* http://localhost:*',
}
const CONSOLE: PageKind = {
  folder: 'console',
  title: 'Console',
  noscript: 'This page needs JavaScript.',
  connect: "'self'",
}

/**
 * Builds the verifier page, which may connect to any router; once the user has named one, the page restricts itself to
 * it.
 * @param sources the directory of sources
 */
export const buildVerifierPage = (sources: string): Promise<string> => buildPage(sources, VERIFIER)

/** Builds the operator's console, which may connect only to the router that served it. */
export const buildConsolePage = (sources: string): Promise<string> => buildPage(sources, CONSOLE)

/**
 * One self-contained HTML file. The same sources and packages give the same bytes. Its content security policy names
 * its own script and style by their digests.
 */
async function buildPage(sources: string, page: PageKind): Promise<string> {
  const { folder: name, title, noscript, connect } = page
  const folder = join(resolve(sources), 'browser', name)
  const part = async (file: string) => {
    const entry = { absWorkingDir: resolve(sources), entryPoints: [join(folder, file)] }
    const { outputFiles } = await build({ ...OPTIONS, ...entry })
    return (outputFiles[0]?.text ?? '').trim()
  }
  const [script, style] = [await part('main.tsx'), await part('page.css')]
  const policy = [
    "default-src 'none'",
    `script-src '${sourceHash(script)}'`,
    `style-src '${sourceHash(style)}'`,
    `connect-src ${connect}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
  const elements: Readonly<Record<string, string>> = {
    title,
    noscript,
    policy: `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    style: `<style>${style}</style>`,
    script: `<script type="module">${script}</script>`,
  }
  const template = readFileSync(join(folder, '../parts/page.html'), 'utf8')
  return template.replaceAll(/<!--(\w+)-->/g, (_match, element: string) => elements[element] ?? '')
}

/** A CSP hash source over the exact text of an element. */
const sourceHash = (text: string): string =>
  `sha256-${createHash('sha256').update(text).digest('base64')}`
