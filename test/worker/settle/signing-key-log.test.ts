import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import type { AttestationAnswer } from '../../../src/worker/link/link.ts'
import { StorageUnavailable, type Database } from '../../../src/worker/storage/database.ts'
import { SigningKeyLog } from '../../../src/worker/settle/signing-key-log.ts'
import { openSqlite, sharedStorage } from '../../support/sqlite-database.ts'

/** A daemon with one key, whose captures fail while it has no envelope. */
function daemon() {
  const now = { envelope: 'an envelope' as string | undefined, asked: 0 }
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: 'x',
    y: 'y',
    kid: 'k',
    alg: 'ES256',
    use: 'sig',
  } as const
  const state = async () => ({
    thread: crypto.randomUUID(),
    generation: 1,
    kid: 'k',
    jwk,
    envelope_sha256: now.envelope === undefined ? null : await sha256Hex(now.envelope),
  })
  const attestation = async (): Promise<AttestationAnswer> => {
    now.asked++
    return now.envelope === undefined
      ? { ok: false, reason: 'unavailable' }
      : { ok: true, envelope: now.envelope }
  }
  return { now, link: { state, freshState: state, attestation } }
}

describe('the log of signing keys', () => {
  test('stores a key with each envelope that binds it, once', async () => {
    const { now, link } = daemon()
    const db = openSqlite()
    const log = new SigningKeyLog(link, sharedStorage(db), () => 1)
    await log.remember('k')
    await log.remember('k')
    now.envelope = 'another one'
    await log.remember('k')
    expect(db.connection.prepare('SELECT envelope FROM signing_keys ORDER BY 1').all()).toEqual([
      { envelope: 'an envelope' },
      { envelope: 'another one' },
    ])
    expect(now.asked).toBe(2)
  })

  test('stores a key again within a minute where the database was restored, or failed over, without it', async () => {
    const { link } = daemon()
    const db = openSqlite()
    const clock = { now: 1 }
    const log = new SigningKeyLog(link, sharedStorage(db), () => clock.now)
    const stored = () => db.connection.prepare('SELECT kid, envelope FROM signing_keys').all()
    await log.remember('k')
    db.connection.exec('DELETE FROM signing_keys')
    clock.now += 59_999
    await log.remember('k')
    expect(stored()).toEqual([])
    clock.now += 1
    await log.remember('k')
    expect(stored()).toEqual([{ kid: 'k', envelope: 'an envelope' }])
  })

  test('writes nothing in a minute in which it finds the key, and is content with it where the storage does not answer', async () => {
    const { now, link } = daemon()
    const db = openSqlite()
    const clock = { now: 1 }
    const asked: string[] = []
    const away = { is: false }
    const batch: Database['batch'] = async (statements) => {
      asked.push(...statements.map(({ sql }) => sql.slice(0, 6)))
      if (away.is) throw new StorageUnavailable('away')
      return db.batch(statements)
    }
    const log = new SigningKeyLog(link, sharedStorage({ batch }), () => clock.now)
    await log.remember('k')
    clock.now += 60_000
    await log.remember('k')
    // Also where the clock was set back.
    clock.now -= 3_600_000
    away.is = true
    await log.remember('k')
    expect(asked).toEqual(['INSERT', 'SELECT', 'SELECT'])
    expect(now.asked).toBe(1)
  })

  test('is content with the stored pair when captures have been failing for an hour', async () => {
    const { now, link } = daemon()
    const storage = sharedStorage(openSqlite())
    const log = new SigningKeyLog(link, storage, () => 1)
    await log.remember('k')
    now.envelope = undefined
    await log.remember('k')
    const ofAnotherWorker = new SigningKeyLog(link, storage, () => 1)
    await ofAnotherWorker.remember('k')
    expect(now.asked).toBe(1)
  })

  test('is content with it when the last envelope expires while it is asked for', async () => {
    const { now, link } = daemon()
    const log = new SigningKeyLog(link, sharedStorage(openSqlite()), () => 1)
    await log.remember('k')
    const state = async () => ({ ...(await link.state()), envelope_sha256: 'ab'.repeat(32) })
    now.envelope = undefined
    const racing = new SigningKeyLog({ ...link, state }, sharedStorage(openSqlite()), () => 1)
    await expect(racing.remember('k')).rejects.toThrow('the signing key has no envelope')
    await log.remember('k')
  })

  test('is content with it when the daemon was replaced after it had signed', async () => {
    const { now, link } = daemon()
    const storage = sharedStorage(openSqlite())
    await new SigningKeyLog(link, storage, () => 1).remember('k')
    const state = async () => ({ ...(await link.state()), kid: 'new' })
    const later = new SigningKeyLog({ ...link, state, freshState: state }, storage, () => 1)
    await later.remember('k')
    expect(now.asked).toBe(1)
  })

  test.each([
    ['a key that never had an envelope', 'k'],
    ['a key of another daemon', 'other'],
  ])('hands out nothing that %s signed', async (_what, kid) => {
    const { now, link } = daemon()
    now.envelope = undefined
    const log = new SigningKeyLog(link, sharedStorage(openSqlite()), () => 1)
    await expect(log.remember(kid)).rejects.toThrow('the signing key has no envelope')
  })
})
