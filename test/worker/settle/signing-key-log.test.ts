import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/protocol/digest.ts'
import type { AttestationAnswer } from '../../../src/worker/link/link.ts'
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
