import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { listAudit } from '../../../src/worker/admin/audit-handler.ts'
import * as admin from '../../../src/worker/admin/handlers.ts'
import { createSession, deleteSession, showSession } from '../../../src/worker/admin/sessions.ts'
import { createToken, listTokens, revokeToken } from '../../../src/worker/admin/tokens.ts'
import type { Handler } from '../../../src/worker/context.ts'
import { openKeyring } from '../../support/keyring.ts'
import { told } from '../../support/refusal.ts'
import { openSqlite, sharedStorage, type SqliteDatabase } from '../../support/sqlite-database.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const BOOT = 'boot-token'
const PAGE = { 'x-cmr-console': '1', 'sec-fetch-site': 'same-origin' }
const ORIGIN = 'https://router.example'

let db: SqliteDatabase
let context: Parameters<Handler>[1]
let now: number
let adminToken: string

beforeEach(() => {
  db = openSqlite()
  const storage = sharedStorage(db)
  now = NOW
  adminToken = BOOT
  const parts = {
    get adminToken() {
      return adminToken
    },
    get requestId() {
      return crypto.randomUUID()
    },
    storage,
    keyring: openKeyring(storage),
    now: () => now++,
    randomBytes: (length: number) => crypto.getRandomValues(new Uint8Array(length)),
    log: () => {},
    config: { service: { mode: 'local' }, plans: {} },
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all that these handlers touch
  context = parts as unknown as Parameters<Handler>[1]
})

interface Sent {
  readonly headers?: Record<string, string>
  readonly body?: object
  readonly params?: Record<string, string>
  readonly origin?: string
}

function send(handler: Handler, { headers = {}, body, params = {}, origin = ORIGIN }: Sent) {
  const request = new Request(`${origin}/admin/x`, {
    method: 'POST',
    headers,
    ...(body && { body: JSON.stringify(body) }),
  })
  return handler(request, context, params)
}

const refusal = (...of: Parameters<typeof send>) => send(...of).then(() => undefined, told)
const codeOf = async (...of: Parameters<typeof send>) => (await refusal(...of))?.code

/** Signs in; answers the cookie as a browser sends it back. */
async function signIn(token = BOOT, sent: Sent = {}): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, ...PAGE, ...sent.headers }
  const answer = await send(createSession, { ...sent, headers })
  return answer.headers.get('set-cookie')?.split(';')[0] ?? ''
}

async function tokenOf(scope: string, more: object = {}): Promise<{ token: string; id: string }> {
  const headers = { authorization: `Bearer ${BOOT}` }
  const answer = await send(createToken, { headers, body: { name: `of ${scope}`, scope, ...more } })
  return z.object({ token: z.string(), id: z.string() }).parse(await answer.json())
}

const inSession = (cookie: string, headers: Record<string, string> = {}) => {
  return { headers: { ...PAGE, cookie, ...headers } }
}

describe('a session of the console', () => {
  it('is begun with a token, in a cookie that no script can read and no other site sends', async () => {
    const headers = { authorization: `Bearer ${BOOT}` }
    const answer = await send(createSession, { headers })
    expect(answer.headers.get('set-cookie')).toMatch(
      /^__Host-cmr_console=[0-9a-f]{64}; Path=\/; Max-Age=7\d{3}; HttpOnly; SameSite=Strict; Secure$/,
    )
    expect(await answer.json()).toEqual({
      name: 'boot',
      scope: 'all',
      expires_at: expect.stringMatching(/^2026-11-20T14:00/),
    })
    const plain = await send(createSession, { headers, origin: 'http://127.0.0.1:8080' })
    expect(plain.headers.get('set-cookie')).toMatch(/^cmr_console=.*SameSite=Strict$/)
    // Behind a balancer that ends TLS.
    const behind = await send(createSession, { headers, origin: 'http://router.example' })
    expect(behind.headers.get('set-cookie')).toMatch(/^__Host-.*Secure$/)
  })

  it('needs a token to begin: a session cannot make itself longer', async () => {
    expect(await codeOf(createSession, { headers: PAGE })).toBe('unauthorized')
    expect(await codeOf(createSession, inSession(await signIn()))).toBe('unauthorized')
    const wrong = { headers: { ...PAGE, authorization: 'Bearer wrong' } }
    expect(await codeOf(createSession, wrong)).toBe('unauthorized')
  })

  it('may do what its token may, and no more', async () => {
    const body = { name: 'x', scope: 'all' }
    const customer = { name: 'x', billing: 'prepaid' }
    for (const [scope, may] of [
      ['read', [false, false]],
      ['customers', [true, false]],
      ['all', [true, true]],
    ] as const) {
      const sent = inSession(await signIn((await tokenOf(scope)).token))
      const codes = await Promise.all([
        codeOf(admin.createCustomer, { ...sent, body: customer }),
        codeOf(createToken, { ...sent, body }),
        codeOf(listTokens, sent),
      ])
      const refused = (passes: boolean) => (passes ? undefined : 'insufficient_scope')
      expect(codes).toEqual([...may.map(refused), undefined])
    }
  })

  it('acts under the name of its token in the audit log, which has its beginning and end', async () => {
    const { token, id } = await tokenOf('all')
    const sent = inSession(await signIn(token))
    await send(createToken, { ...sent, body: { name: 'x', scope: 'read' } })
    await send(deleteSession, sent)
    const log = await (
      await send(listAudit, { headers: { authorization: `Bearer ${BOOT}` } })
    ).json()
    const by = { token_id: id, token_name: 'of all', status: 200 }
    expect(log).toMatchObject({
      data: [
        { ...by, action: 'session.end' },
        { ...by, action: 'tokens.create' },
        { ...by, action: 'session.begin' },
        { action: 'tokens.create', token_name: 'boot' },
      ],
    })
    expect(JSON.stringify(log)).not.toContain(sent.headers.cookie.split('=')[1])
  })

  it('is over after sign-out, also for a copy of the cookie', async () => {
    const sent = inSession(await signIn())
    const answer = await send(deleteSession, sent)
    expect(answer.headers.get('set-cookie')).toMatch(/^__Host-cmr_console=; Path=\/; Max-Age=0;/)
    for (const handler of [showSession, listTokens, deleteSession]) {
      expect(await refusal(handler, sent)).toEqual({
        code: 'session_ended',
        message: 'The session has ended. Sign in again.',
      })
    }
  })

  it('ends with its token: revoked, expired or replaced', async () => {
    const [revoked, expiring] = [
      await tokenOf('read'),
      await tokenOf('read', { expires_at: '2026-11-20T12:30:00Z' }),
    ]
    const [one, two, boot] = [
      inSession(await signIn(revoked.token)),
      inSession(await signIn(expiring.token)),
      inSession(await signIn()),
    ]
    expect(await (await send(showSession, two)).json()).toMatchObject({
      name: 'of read',
      scope: 'read',
      expires_at: '2026-11-20T12:30:00.000Z',
    })
    await send(revokeToken, {
      headers: { authorization: `Bearer ${BOOT}` },
      params: { id: revoked.id },
    })
    expect(await codeOf(showSession, one)).toBe('session_ended')
    now = Date.parse('2026-11-20T12:30:00Z')
    expect(await codeOf(showSession, two)).toBe('session_ended')
    expect(await codeOf(showSession, boot)).toBeUndefined()
    adminToken = 'another boot token'
    expect(await codeOf(showSession, boot)).toBe('session_ended')
    adminToken = ''
    expect(await codeOf(showSession, boot)).toBe('session_ended')
  })

  it('ends by itself after two hours, whatever the browser says', async () => {
    const sent = inSession(await signIn())
    now = NOW + 2 * 3_600_000 - 60_000
    expect(await codeOf(showSession, sent)).toBeUndefined()
    now = NOW + 2 * 3_600_000 + 60_000
    expect(await codeOf(showSession, sent)).toBe('session_ended')
  })

  it('has a secret of the router’s own making: one that was planted before is not taken over', async () => {
    const planted = `__Host-cmr_console=${'ab'.repeat(32)}`
    const cookie = await signIn(BOOT, { headers: { cookie: planted } })
    expect(cookie).not.toBe(planted)
    expect(await codeOf(showSession, inSession(planted))).toBe('session_ended')
    // Both at once: it cannot be told which of them is the operator's.
    expect(await codeOf(showSession, inSession(`${planted}; ${cookie}`))).toBe('unauthorized')
    // A cookie without the prefix can be planted by a sibling domain.
    const bare = cookie.replace('__Host-', '')
    expect(await codeOf(showSession, inSession(bare))).toBe('unauthorized')
    // Signing in again ends the previous session.
    await signIn(BOOT, { headers: { cookie } })
    expect(await codeOf(showSession, inSession(cookie))).toBe('session_ended')
  })

  it('is only for requests of its own page', async () => {
    const cookie = await signIn()
    const refused = {
      code: 'cross_site_request',
      message: 'A session is for the page of the console alone. Programs send an admin token.',
    }
    for (const headers of [
      // A form of another site, if a browser sent the cookie with it.
      { cookie, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
      // A page of a sibling domain, which `SameSite` counts as the same site.
      { ...PAGE, cookie, 'sec-fetch-site': 'same-site', origin: 'https://blog.router.example' },
      // A browser that does not know Sec-Fetch-Site.
      { cookie, 'x-cmr-console': '1', origin: 'https://evil.example' },
      { cookie, 'x-cmr-console': '1', origin: 'null' },
      // Typed into the address bar, or an image.
      { cookie, 'sec-fetch-site': 'none' },
      { cookie },
    ]) {
      expect(await refusal(createToken, { headers, body: { name: 'x', scope: 'all' } })).toEqual(
        refused,
      )
      expect(await refusal(deleteSession, { headers })).toEqual(refused)
    }
    expect(await codeOf(showSession, inSession(cookie, { origin: ORIGIN }))).toBeUndefined()
  })

  it('is kept by its digest, and never with the boot token’s', async () => {
    const cookie = await signIn()
    const stored = JSON.stringify(db.connection.prepare('SELECT * FROM admin_sessions').all())
    const secret = cookie.split('=')[1] ?? ''
    expect(stored).not.toContain(secret)
    const digest = async (text: string) =>
      Buffer.from(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))).toString(
        'hex',
      )
    expect(stored).toContain(await digest(secret))
    expect(stored).not.toContain(await digest(BOOT))
  })
})
