import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

/**
 * Right after a wait for a promise of another request, code that V8 has optimised goes on as that request, and the runtime refuses
 * it what belongs to its own (docs/performance-findings.md, "Waking a request"). A request can only wait for such a promise where one is
 * kept outside of functions. So whoever keeps one waits for it through `ownPromise`, or is named here with the reason why each that waits
 * for it is the request that made it.
 */

const SOURCES = join(import.meta.dirname, '../../src/worker')

const ONE_REQUEST = 'its object belongs to one request'
const ONE_OBJECT = 'of a Durable Object, all calls of which the runtime runs as one'

const REASONS: Readonly<Record<string, string>> = {
  'batching/batcher.ts': 'who leads made it; who joins waits for a promise of its own',
  'batching/coalescer.ts': 'who waits for it does so in `inTime`, for a promise of its own',
  'chunks/chunk-switch.ts': "the runtime's own, of a socket that the request has just opened",
  'chunks/chunk-stream.ts':
    'the request waits for those that it has made, and the object for its own',
  'completion/admitted.ts': ONE_REQUEST,
  'completion/ask-daemon.ts': ONE_REQUEST,
  'completion/joined-sends.ts': `${ONE_REQUEST}; the constant is resolved, and of no request`,
  'completion/stream-reply.ts': ONE_REQUEST,
  'completion/written-stream.ts': ONE_REQUEST,
  'ehbp/joined-chunks.ts': ONE_REQUEST,
  'embedded/embedded-ledger.ts': ONE_OBJECT,
  'embedded/shared-fold.ts': ONE_OBJECT,
  'http/held-answer.ts': ONE_REQUEST,
  'provider/streamed-body.ts': ONE_REQUEST,
  'storage/operation-deadline.ts': 'it belongs to one operation of one request',
  'storage/postgres-engine.ts': ONE_OBJECT,
  'storage/read-turns.ts': ONE_OBJECT,
  'stream/digest.ts': ONE_REQUEST,
}

/** Where a promise is kept: as a member, in a collection, or in a variable that several calls of a function see. */
const KEEPING: readonly RegExp[] = [
  /^\s+(?:readonly )?#?\w+\??: [^(\n]*\bPromise<.*(?<!,)$/m,
  /^\s+(?:readonly )?#\w+ = (?:new )?Promise\b/m,
  /\breadonly \w+\??: Promise</,
  /\bnew (?:BriefMap|Map|Set|WeakMap|Array)<[^(\n]*\bPromise</,
  /^\s*let \w+: [^(\n]*\bPromise</m,
  /^(?:export )?const \w+(?:: [^(\n]*\bPromise<| = (?:new )?Promise\b)/m,
]

const keeping = (text: string) => KEEPING.some((pattern) => pattern.test(withoutComments(text)))

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '')
}

it.each([
  'class A {\n  readonly #asked = new Map<string, Promise<Answer>>()\n}',
  'class A {\n  readonly #asked = new BriefMap<number, Promise<Answer>>()\n}',
  'class A {\n  #asked: Promise<Answer> | undefined\n}',
  'class A {\n  #last = Promise.resolve()\n}',
  'interface A {\n  readonly asked?: Promise<Answer>\n}',
  "type A = { readonly kind: 'later'; readonly asked: Promise<Answer> }",
  'function open() {\n  let asked: Promise<Answer> | undefined\n}',
  'const asked: Promise<Answer> = ask()',
  'export const asked = new Promise(() => {})',
])('sees that a promise is kept in %j', (text) => {
  expect(keeping(text)).toBe(true)
})

it.each([
  'class A {\n  readonly #ask: () => Promise<Answer>\n}',
  'class A {\n  async ask(): Promise<Answer> {}\n}',
  'async function ask(\n  asked: Promise<Answer>,\n): Promise<Answer> {}',
  'function ask() {\n  const asked: Promise<Answer> = fetchIt()\n}',
  '/** #asked: Promise<Answer> */\nconst ask = 1',
])('sees that none is kept in %j', (text) => {
  expect(keeping(text)).toBe(false)
})

it('is known of each promise that is kept why no request waits for that of another one', () => {
  const paths = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  const found = paths.filter((path) => {
    if (!path.endsWith('.ts')) return false
    const text = readFileSync(join(SOURCES, path), 'utf8')
    return keeping(text) && !/^import \{[^}]*\bownPromise\b/m.test(text)
  })
  expect(found.toSorted()).toEqual(Object.keys(REASONS).toSorted())
})
