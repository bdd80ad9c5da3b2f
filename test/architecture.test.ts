import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'

/** The import rules of the project, checked on the text of every source file. */

const ROOT = join(import.meta.dirname, '..')
const CONTRIBUTING = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8')

interface SourceFile {
  /** From the repository's root, such as `src/worker/http/errors.ts`. */
  readonly path: string
  readonly text: string
  readonly imports: readonly string[]
}

const SOURCES = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => readSource(join('src', name)))

function readSource(path: string): SourceFile {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const specifiers = [
    ...text.matchAll(/^(?:import|export)\s[^'"]*?from\s+['"]([^'"]+)['"]/gm),
    ...text.matchAll(/^import\s+['"]([^'"]+)['"]/gm),
    ...text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g),
  ].map((match) => match[1] ?? '')
  const resolve = (specifier: string) =>
    specifier.startsWith('.') ? normalize(join(dirname(path), specifier)) : specifier
  return { path, text, imports: specifiers.map(resolve) }
}

/** All imports that break a rule, as `file -> import`. */
function offences(broken: (from: string, to: string) => boolean): string[] {
  return SOURCES.flatMap(({ path, imports }) =>
    imports.filter((to) => broken(path, to)).map((to) => `${path} -> ${to}`),
  )
}

const part = (path: string) => (path.startsWith('src/') ? (path.split('/')[1] ?? '') : undefined)

/** What others load by the name of the package or of its part. */
const ENTRY_POINTS: readonly string[] = [
  'src/worker/index.ts',
  'src/verify/index.ts',
  'src/client/index.ts',
  'src/client/browser.ts',
]

/** What each part may import besides itself, as CONTRIBUTING.md shows it. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  verify: ['protocol'],
  client: ['protocol', 'verify'],
  browser: ['protocol', 'verify', 'client'],
  worker: ['protocol', 'verify'],
  enclave: ['protocol', 'verify', 'worker/stream', 'worker/formats'],
  ledger: ['protocol', 'worker', 'enclave'],
  standin: ['protocol', 'verify', 'enclave'],
  host: ['protocol', 'verify', 'worker', 'enclave', 'standin'],
  cli: ['protocol', 'verify', 'client', 'worker', 'enclave', 'standin', 'host'],
}

/**
 * What the daemon runs of the worker, for providers that it reaches: the reading of answers, and the writing of them in the
 * formats of the endpoints.
 */
const SHARED_WITH_ENCLAVE = /^src\/worker\/(stream|formats)\//

/**
 * The folders and files of a part in ranks. A file may import from its own folder and from every rank before its own; a
 * file outside folders also from others of its rank.
 */
type Ranks = readonly (readonly string[])[]

const WORKER_RANKS: Ranks = [
  ['batching', 'json'],
  ['calls'],
  ['storage', 'stream', 'link'],
  ['formats', 'chunks'],
  ['http'],
  ['auth', 'limits', 'browser-rules.ts'],
  ['metrics', 'history'],
  ['provider'],
  ['routing'],
  ['settle'],
  ['embedded'],
  ['env.ts', 'settings.ts', 'context.ts', 'runtime-deps.ts'],
  ['storage-parts.ts', 'request-contexts.ts', 'drain-endpoint.ts'],
  ['idempotency'],
  ['admission.ts'],
  ['completion'],
  [
    'chat',
    'responses',
    'messages',
    'embeddings',
    'transcription',
    'ehbp',
    'models',
    'receipts',
    'usage',
    'attestation',
    'console',
    'admin',
    'webhooks',
    'openapi',
  ],
  ['endpoints.ts'],
  ['router.ts'],
  ['app.ts'],
  ['index.ts'],
]

const ENCLAVE_RANKS: Ranks = [
  [
    'config',
    'keys',
    'outbound',
    'provenance',
    'simulated',
    'telemetry',
    'link-error.ts',
    'log.ts',
    'unused-memory.ts',
  ],
  ['clock', 'link-server', 'read-body.ts'],
  ['hpke', 'sealed', 'snp', 'open-egress.ts'],
  ['adapters', 'release', 'open-machine.ts'],
  ['proofs.ts', 'evidence-deps.ts'],
  ['egress', 'envelope', 'isolated'],
  ['proofs'],
  ['sign'],
  ['whole-answers'],
  ['link', 'identity.ts', 'calls.ts'],
  ['carrier', 'upstream.ts'],
  ['open-links.ts'],
  ['daemon.ts'],
  ['main.ts'],
]

const RANKS = Object.entries({ worker: WORKER_RANKS, enclave: ENCLAVE_RANKS })

function placeOf(ranks: Ranks, path: string): { rank: number; place: string } {
  const place = path.split('/')[2] ?? ''
  return { rank: ranks.findIndex((names) => names.includes(place)), place }
}

/** The files that can reach themselves over imports. */
function circular(): string[] {
  const importsOf = new Map(SOURCES.map(({ path, imports }) => [path, imports]))
  const reaches = (start: string): boolean => {
    const seen = new Set<string>()
    const waiting = [...(importsOf.get(start) ?? [])]
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (next === start) return true
      if (seen.has(next)) continue
      seen.add(next)
      waiting.push(...(importsOf.get(next) ?? []))
    }
    return false
  }
  return [...importsOf.keys()].filter(reaches)
}

describe('the architecture', () => {
  it('lets a part import only itself and what its row names', () => {
    const broken = (from: string, to: string) => {
      const own = part(from) ?? ''
      const allowed = [own, ...(MAY_IMPORT[own] ?? [])]
      return part(to) !== undefined && !allowed.some((name) => to.startsWith(`src/${name}/`))
    }
    expect(offences(broken)).toEqual([])
  })

  it('shares with the daemon two folders of the worker that depend on little else', () => {
    const known = /^src\/(protocol|worker\/(stream|formats|json|batching))\/|^@noble\/|^zod$/
    const broken = (from: string, to: string) => SHARED_WITH_ENCLAVE.test(from) && !known.test(to)
    expect(offences(broken)).toEqual([])
  })

  it('imports zod as a namespace in what applications and pages bundle, which drops the rest of it', () => {
    const bundled = SOURCES.filter(({ path }) =>
      /^src\/(protocol|verify|client|browser)\//.test(path),
    )
    const whole = bundled.filter(({ text }) => /^import \{[^}]*\bz\b[^}]*\} from 'zod'/m.test(text))
    expect(whole.map(({ path }) => path)).toEqual([])
  })

  it.each(RANKS)('gives every file of the %s a place in the order', (name, ranks) => {
    const files = SOURCES.map(({ path }) => path).filter((path) => part(path) === name)
    expect(files.length).toBeGreaterThan(0)
    expect(files.filter((path) => placeOf(ranks, path).rank < 0)).toEqual([])
  })

  it.each(RANKS)(
    'lets a file of the %s import from its own folder or a lower rank',
    (name, ranks) => {
      const broken = (from: string, to: string) => {
        if (part(from) !== name || part(to) !== name) return false
        const source = placeOf(ranks, from)
        const target = placeOf(ranks, to)
        if (source.place === target.place) return false
        const sameLevel = source.rank === target.rank && source.place.endsWith('.ts')
        return target.rank > source.rank || (target.rank === source.rank && !sameLevel)
      }
      expect(offences(broken)).toEqual([])
    },
  )

  it('has no circle of imports, type imports included', () => {
    expect(circular()).toEqual([])
  })

  it('lets no two folders of one part import each other', () => {
    const folder = (path: string) => /^src\/[^/]+\/[^/]+(?=\/)/.exec(path)?.[0]
    const edges = new Set(
      SOURCES.flatMap(({ path, imports }) => imports.map((to) => [folder(path), folder(to)]))
        .filter(([from, to]) => from !== undefined && to !== undefined && from !== to)
        .map(([from, to]) => `${from} ${to}`),
    )
    const reversed = (edge: string) => edge.split(' ').toReversed().join(' ')
    expect([...edges].filter((edge) => edges.has(reversed(edge)))).toEqual([])
  })

  it('keeps Node out of the protocol, the verifier, the worker and the pages', () => {
    // The npm package of that name, which needs no Node.
    const EMULATED = 'buffer'
    const broken = (from: string, to: string) =>
      /^src\/(browser|protocol|verify|worker)\//.test(from) && isBuiltin(to) && to !== EMULATED
    expect(offences(broken)).toEqual([])
  })

  it('names storage engines in storage alone', () => {
    const engines = /\b(D1Database|DurableObjectNamespace|DurableObjectState)\b|from 'postgres'/
    // An object that stores nothing.
    const owner = 'src/worker/chunks/chunk-object.ts'
    const naming = SOURCES.filter(
      ({ path, text }) =>
        engines.test(text) && !path.startsWith('src/worker/storage/') && path !== owner,
    )
    expect(naming.map(({ path }) => path)).toEqual([])
  })

  it('builds answers in http alone', () => {
    // What the daemon answered as a message.
    const received = 'src/worker/link/message-binding.ts'
    const building = SOURCES.filter(
      ({ path, text }) =>
        path.startsWith('src/worker/') &&
        !path.startsWith('src/worker/http/') &&
        path !== received &&
        /\bnew Response\(|\bResponse\.(json|error|redirect)\(/.test(code(text)),
    )
    expect(building.map(({ path }) => path)).toEqual([])
  })

  it('reads the clock and makes ids and random numbers at the entries alone', () => {
    const entries =
      /^src\/(worker\/index\.ts|client\/runtime-deps\.ts|browser\/\w+\/main\.tsx|enclave\/(main|open-machine|evidence-deps|isolated\/adapter-thread|carrier\/carrier-thread)\.ts|ledger\/main\.ts|standin\/|host\/|cli\/)/
    // Keys and their certificates, and the chips that are simulated, are random by their nature.
    const made = /^src\/enclave\/(keys|simulated)\//
    const clock = /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bhrtime\b/
    const random =
      /\brandomUUID\b|\bMath\.random\b|\bgetRandomValues\b|\brandom(Bytes|Int)\b.*'node:crypto'/
    const reading = SOURCES.filter(({ path, text }) => {
      if (entries.test(path)) return false
      return clock.test(code(text)) || (random.test(code(text)) && !made.test(path))
    })
    expect(reading.map(({ path }) => path)).toEqual([])
  })

  it('gives each part the row that CONTRIBUTING.md shows', () => {
    const rows = [...CONTRIBUTING.matchAll(/^\| `src\/(\w+)` .*\|(.*)\|$/gm)]
    const shown = rows.map(([, name = '', cell = '']) => [
      name,
      [...cell.matchAll(/`([^`]+)`/g)].map(([, imported]) => imported),
    ])
    expect(Object.fromEntries(shown)).toEqual(MAY_IMPORT)
    const parts = new Set(SOURCES.map(({ path }) => part(path) ?? ''))
    expect(Object.keys(MAY_IMPORT).toSorted()).toEqual([...parts].toSorted())
  })

  it.each(RANKS)('has the order of the %s that CONTRIBUTING.md shows', (name, ranks) => {
    const layers = new RegExp(`^${name}: ((?:.*\\n)+?)(?=\\w+:|\`\`\`)`, 'm')
    const shown = layers.exec(CONTRIBUTING)?.[1] ?? ''
    const folders = ranks.flat().filter((one) => !one.endsWith('.ts'))
    const nameOf = (one: string) => {
      const bare = one.replace(/\.ts$/, '')
      return folders.includes(bare) ? one : bare
    }
    const expected = ranks.map((names) =>
      names.includes('chat') ? 'the endpoint folders' : names.map(nameOf).toSorted().join(', '),
    )
    const order = shown.split('<').map((rank) =>
      rank
        .split(',')
        .map((one) => one.trim())
        .toSorted()
        .join(', '),
    )
    expect(order).toEqual(expected)
  })

  it('has no drawer files and no barrels', () => {
    const drawer = /\/(utils?|helpers?|common|misc|shared)(\/|\.ts$)/
    const names = SOURCES.map(({ path }) => path)
    expect(names.filter((path) => drawer.test(path))).toEqual([])
    const isIndex = (path: string) => path.endsWith('/index.ts') && !ENTRY_POINTS.includes(path)
    expect(names.filter(isIndex)).toEqual([])
  })

  it('points every relative import at a file of src that is there', () => {
    const known = new Set(SOURCES.map(({ path }) => path))
    const broken = (_from: string, to: string) => /\.tsx?$/.test(to) && !known.has(to)
    expect(offences(broken)).toEqual([])
  })
})

/** Source text without comments, so that a docstring may speak of what code may not do. */
function code(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '')
}
