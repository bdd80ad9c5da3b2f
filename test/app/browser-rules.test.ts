import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startStack, until, type Stack } from '../support/stack.ts'

const OURS = 'https://app.example'
const THEIRS = 'https://evil.example'
const KEYED = ['/v1/chat/completions', '/v1/audio/transcriptions', '/v1/usage', '/v1/key']
/** Keyed, and read by verifier pages that were opened from anywhere. */
const RECEIPTS = ['/v1/receipts/x', '/v1/receipts/x/evidence']
const PUBLIC = ['/v1/models', '/.well-known/jwks.json', '/.well-known/trust.json', '/attestation']
const ADMIN = ['/admin/customers', '/admin/metrics', '/admin/routes']

let stack: Stack

function config(corsOrigins: readonly string[]): object {
  return {
    service: { name: 'router', mode: 'local', cors_origins: corsOrigins },
    providers: {
      standin: {
        base_url: 'http://standin.localhost/standin/v1',
        attestation: { adapter: 'none' },
      },
    },
    routes: [
      {
        model_key: 'glm',
        provider: 'standin',
        upstream_model: 'glm',
        type: 'chat',
        pricing: { currency: 'eur', input_per_mtok: 1, output_per_mtok: 1 },
      },
    ],
  }
}

beforeAll(async () => {
  stack = await startStack({ config: config([]) })
})
afterAll(() => stack.stop())

function preflight(path: string, origin: string): Promise<Response> {
  return stack.fetch(path, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization, content-type, x-stainless-lang',
    },
  })
}

function use(path: string, origin: string): Promise<Response> {
  const method = /completions|transcriptions/.test(path) ? 'POST' : 'GET'
  return stack.fetch(path, { method, headers: { origin } })
}

function chat(origin: string, stream: boolean): Promise<Response> {
  const messages = [{ role: 'user', content: 'Hello!' }]
  const body = JSON.stringify({ model: 'glm', messages, stream })
  return stack.fetch('/v1/chat/completions', { method: 'POST', headers: { origin }, body })
}

/** The headers that have to do with other origins. */
function crossOrigin({ headers }: Response): Record<string, string> {
  return Object.fromEntries(
    [...headers].filter(([name]) => name.startsWith('access-control-') || name === 'vary'),
  )
}

async function reload(corsOrigins: readonly string[]): Promise<void> {
  writeFileSync(join(stack.stateDir, 'given-config.json'), JSON.stringify(config(corsOrigins)))
  stack.signal('SIGUSR2')
  await until(async () => {
    const answer = await preflight('/v1/usage', OURS)
    return answer.headers.has('access-control-allow-origin') === corsOrigins.length > 0
  })
}

describe('as long as no origin is configured', () => {
  test.each([...KEYED, ...ADMIN, '/nothing'])('no page may read %s', async (path) => {
    for (const origin of [OURS, 'null']) {
      expect(crossOrigin(await preflight(path, origin))).toEqual({})
      expect(crossOrigin(await use(path, origin))).toEqual({})
    }
  })

  test('no page may read a completion, whole or streamed', async () => {
    for (const stream of [false, true]) {
      const answer = await chat(OURS, stream)
      expect(answer.status).toBe(200)
      expect(crossOrigin(answer)).toEqual({})
      await answer.text()
    }
  })

  test.each(RECEIPTS)('every page that has the key may read %s, without cookies', async (path) => {
    for (const origin of [THEIRS, 'null']) {
      expect(crossOrigin(await preflight(path, origin))).toEqual({
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, POST',
        'access-control-allow-headers': 'authorization, *',
        'access-control-max-age': '600',
      })
      const answer = await use(path, origin)
      expect(answer.status).toBe(404)
      expect(crossOrigin(answer)).toEqual({
        'access-control-allow-origin': '*',
        'access-control-expose-headers': '*',
      })
      const refused = await stack.fetch(path, { headers: { origin, authorization: 'Bearer no' } })
      expect(refused.status).toBe(401)
    }
  })

  test.each(PUBLIC)('every page may read %s', async (path) => {
    const answer = await use(path, THEIRS)
    expect(answer.status).toBe(200)
    expect(crossOrigin(answer)).toEqual({
      'access-control-allow-origin': '*',
      'access-control-expose-headers': '*',
    })
  })
})

describe('once every origin is configured', () => {
  beforeAll(() => reload(['*']))
  afterAll(() => reload([]))

  test.each(KEYED)('pages of any origin may use %s', async (path) => {
    const allowed = await preflight(path, THEIRS)
    expect(crossOrigin(allowed)).toEqual({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': 'authorization, *',
      'access-control-max-age': '600',
    })
    expect(crossOrigin(await use(path, THEIRS))).toEqual({
      'access-control-allow-origin': '*',
      'access-control-expose-headers': '*',
    })
  })

  test.each(ADMIN)('no page may use %s', async (path) => {
    expect(crossOrigin(await preflight(path, THEIRS))).toEqual({})
    expect(crossOrigin(await use(path, THEIRS))).toEqual({})
  })
})

describe('once an origin is configured', () => {
  beforeAll(() => reload([OURS]))

  test.each(KEYED)('its pages, and only they, may use %s', async (path) => {
    const allowed = await preflight(path, OURS)
    expect(allowed.status).toBe(204)
    expect(crossOrigin(allowed)).toEqual({
      'access-control-allow-origin': OURS,
      'access-control-allow-methods': 'GET, POST',
      // Client libraries add headers of their own; the wildcard does not stand for `authorization`.
      'access-control-allow-headers': 'authorization, *',
      'access-control-max-age': '600',
      vary: 'origin',
    })
    const foreign = [
      THEIRS,
      'null',
      `${OURS}.evil.example`,
      'http://app.example',
      OURS.toUpperCase(),
    ]
    for (const origin of foreign) {
      expect(crossOrigin(await preflight(path, origin))).toEqual({ vary: 'origin' })
      expect(crossOrigin(await use(path, origin))).toEqual({ vary: 'origin' })
    }
  })

  test('its pages may read completions and refusals, never with cookies', async () => {
    for (const stream of [false, true]) {
      const answer = await chat(OURS, stream)
      expect(crossOrigin(answer)).toEqual({
        'access-control-allow-origin': OURS,
        'access-control-expose-headers': '*',
        vary: 'origin',
      })
      await answer.text()
    }
    const refused = await stack.fetch('/v1/usage', {
      headers: { origin: OURS, authorization: 'Bearer wrong' },
    })
    expect(refused.status).toBe(401)
    expect(refused.headers.get('access-control-allow-origin')).toBe(OURS)
    expect(refused.headers.has('access-control-allow-credentials')).toBe(false)
  })

  test.each(ADMIN)('no page may read %s, nor ask whether it may', async (path) => {
    expect(crossOrigin(await preflight(path, OURS))).toEqual({})
    expect(crossOrigin(await use(path, OURS))).toEqual({})
  })
})

describe('every answer', () => {
  test.each([...KEYED, ...RECEIPTS, ...PUBLIC, ...ADMIN, '/healthz', '/', '/v1/nothing', '/%ff'])(
    'tells browsers what they must not do: %s',
    async (path) => {
      const { headers } = await stack.fetch(path)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; frame-ancestors 'none'",
      )
      expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
      expect(headers.has('server')).toBe(false)
      expect(headers.get('set-cookie')).toBeNull()
    },
  )

  test.each([...KEYED, ...ADMIN])('is kept by no cache: %s', async (path) => {
    expect((await stack.fetch(path)).headers.get('cache-control')).toMatch(/no-store|no-cache/)
  })
})
