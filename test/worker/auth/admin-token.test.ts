import { beforeEach, describe, expect, it } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import type { AdminGate } from '../../../src/worker/auth/admin-session.ts'
import { ADMIN_SCOPES, newAdminToken, requireAdmin } from '../../../src/worker/auth/admin-token.ts'
import { StorageUnavailable, type Storage } from '../../../src/worker/storage/database.ts'
import { sql } from '../../../src/worker/storage/sql.ts'
import { told } from '../../support/refusal.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'

/** What a client would be told. */
const refusalOf = (asked: Promise<unknown>) => asked.then(() => undefined, told)

const NOW = 1_800_000_000_000

const REFUSED = { code: 'unauthorized', message: 'The admin token is missing or not valid.' }

let storage: Storage
let gate: AdminGate

beforeEach(() => {
  storage = sharedStorage(openSqlite())
  gate = { adminToken: 'boot-token', storage, now: () => NOW }
})

function requestWith(authorization?: string): Request {
  return new Request('https://router.test/', {
    headers: authorization === undefined ? {} : { authorization },
  })
}

async function addToken(scope: string, expiresAt: number | null = null): Promise<string> {
  const { id, token } = newAdminToken((length) => crypto.getRandomValues(new Uint8Array(length)))
  const hash = await sha256Hex(token)
  await storage.directory().batch([
    sql`INSERT INTO admin_tokens (token_id, token_hash, name, scope, created_at, expires_at)
      VALUES (${id}, ${hash}, ${`of ${scope}`}, ${scope}, ${NOW}, ${expiresAt})`,
  ])
  return token
}

describe('the boot token', () => {
  it('may do everything, also where the storage is gone, and no other text may', async () => {
    const gone = { batch: () => Promise.reject(new StorageUnavailable('gone')) }
    const down = { ...gate, storage: { customer: () => gone, directory: () => gone } }
    const boot = { tokenId: null, name: 'boot' }
    expect(await requireAdmin(requestWith('Bearer boot-token'), 'all', down)).toMatchObject(boot)
    for (const text of [
      undefined,
      'Bearer',
      'Bearer Boot-token',
      'Bearer boot-token2',
      'boot-token',
    ]) {
      expect(await refusalOf(requireAdmin(requestWith(text), 'read', down))).toEqual(REFUSED)
    }
  })

  it('that is empty opens nothing', async () => {
    const empty = { ...gate, adminToken: '' }
    expect(await refusalOf(requireAdmin(requestWith(), 'read', empty))).toEqual(REFUSED)
    expect(await refusalOf(requireAdmin(requestWith('Bearer '), 'read', empty))).toEqual(REFUSED)
  })
})

describe('a named token', () => {
  it.each([
    ['read', ['read']],
    ['customers', ['read', 'customers']],
    ['all', ['read', 'customers', 'all']],
  ])('of scope %s may do %j and no more', async (scope, allowed) => {
    const token = await addToken(scope)
    const ends = await Promise.all(
      ADMIN_SCOPES.map((wanted) =>
        requireAdmin(requestWith(`Bearer ${token}`), wanted, gate).then(({ name }) => name, told),
      ),
    )
    const expected = ADMIN_SCOPES.map((wanted) =>
      allowed.includes(wanted)
        ? `of ${scope}`
        : {
            code: 'insufficient_scope',
            message: `This needs an admin token of scope "${wanted}"; the given one has "${scope}".`,
          },
    )
    expect(ends).toEqual(expected)
  })

  it('opens nothing once it is expired, revoked or changed by a letter', async () => {
    const ask = (token: string) =>
      refusalOf(requireAdmin(requestWith(`Bearer ${token}`), 'read', gate))
    expect(await ask(await addToken('all', NOW))).toEqual(REFUSED)
    const token = await addToken('all', NOW + 1)
    const last = token.endsWith('0') ? '1' : '0'
    expect(await ask(token.slice(0, -1) + last)).toEqual(REFUSED)
    const holder = await requireAdmin(requestWith(`bearer ${token}`), 'all', gate)
    expect(holder).toMatchObject({ name: 'of all', scope: 'all' })
    await storage.directory().batch([sql`UPDATE admin_tokens SET revoked_at = ${NOW}`])
    expect(await ask(token)).toEqual(REFUSED)
  })

  it('cannot be judged without the storage', async () => {
    const token = await addToken('all')
    const gone = { batch: () => Promise.reject(new StorageUnavailable('gone')) }
    const down = { ...gate, storage: { customer: () => gone, directory: () => gone } }
    await expect(requireAdmin(requestWith(`Bearer ${token}`), 'read', down)).rejects.toThrow('gone')
  })
})
