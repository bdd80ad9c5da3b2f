import { expect, test } from 'vitest'
import { beginSession, endSession, findSession } from '../../../src/worker/auth/admin-session.ts'
import type { Database } from '../../../src/worker/storage/database.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import { told } from '../../support/refusal.ts'
import { sharedStorage } from '../../support/sqlite-database.ts'

const NOON = Date.parse('2026-11-22T12:00:00Z')
const HOUR = 3_600_000

/** What sessions of the console must do alike on every engine. */
export function describeSessions(instances: (id: string) => readonly [Database, Database]): void {
  test('sessions begun on one instance hold on another, and end on both', async () => {
    const [left, right] = instances('sessions')
    const gate = (db: Database, now: number) => ({
      adminToken: 'boot-token',
      storage: sharedStorage(db),
      now: () => now,
      randomBytes: (length: number) => crypto.getRandomValues(new Uint8Array(length)),
    })
    const request = (cookie = '') =>
      new Request('https://router.example/admin/session', {
        headers: { cookie: cookie.split(';')[0] ?? '', 'x-cmr-console': '1' },
      })
    const begin = (tokenId: string | null) =>
      beginSession(request(), { tokenId, tokenEndsAt: null }, gate(left, NOON))
    const [boot, named] = [await begin(null), await begin('0123456789')]
    expect(await findSession(request(boot.cookie), gate(right, NOON))).toEqual({
      tokenId: null,
      expiresAt: NOON + 2 * HOUR,
    })
    expect(await findSession(request(named.cookie), gate(right, NOON + HOUR))).toMatchObject({
      tokenId: '0123456789',
    })
    const ended = { code: 'session_ended', message: 'The session has ended. Sign in again.' }
    const refusal = (cookie: string, now: number) =>
      findSession(request(cookie), gate(right, now)).then(() => undefined, told)
    expect(await refusal(boot.cookie, NOON + 2 * HOUR)).toEqual(ended)
    await endSession(request(boot.cookie), gate(right, NOON))
    expect(await refusal(boot.cookie, NOON)).toEqual(ended)
    expect(await refusal(named.cookie, NOON)).toBeUndefined()
    const [rows = []] = await left.batch([sql`SELECT * FROM admin_sessions`])
    expect(JSON.stringify(rows)).not.toContain(/=([0-9a-f]+)/.exec(named.cookie)?.[1])
    await beginSession(request(), { tokenId: null, tokenEndsAt: null }, gate(left, NOON + 9 * HOUR))
    const [left9 = []] = await right.batch([sql`SELECT token_id FROM admin_sessions`])
    expect(left9).toEqual([{ token_id: null }])
  })
}
