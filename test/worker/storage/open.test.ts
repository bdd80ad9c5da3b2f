import { describe, expect, it } from 'vitest'
import { openStorage, type StorageEnv } from '../../../src/worker/storage/open.ts'

const HOST = { now: () => 0, keepAlive: () => {} }

const objects = {
  idFromName: () => {
    throw new Error('not reached')
  },
  get: () => {
    throw new Error('not reached')
  },
}

describe('opening the storage', () => {
  it.each<[StorageEnv, string]>([
    [
      { STORAGE: 'mysql' },
      'STORAGE names no engine; known are durable-object, sqlite, d1, postgres',
    ],
    [{ STORAGE: '' }, 'STORAGE names no engine; known are durable-object, sqlite, d1, postgres'],
    [
      { STORAGE: 'toString' },
      'STORAGE names no engine; known are durable-object, sqlite, d1, postgres',
    ],
    [{}, 'the storage engine needs the binding STORE, which is missing'],
    [{ STORAGE: 'sqlite' }, 'the storage engine needs the binding LEDGER, which is missing'],
    [{ STORAGE: 'd1' }, 'the storage engine needs the binding DB, which is missing'],
    [
      { STORAGE: 'postgres', POSTGRES: objects },
      'the storage engine needs the binding DATABASE_URL, which is missing',
    ],
    [
      { STORAGE: 'postgres', DATABASE_URL: 'postgres://localhost/x' },
      'the storage engine needs the binding POSTGRES, which is missing',
    ],
  ])('refuses %j', (env, message) => {
    expect(() => openStorage(env, HOST)).toThrow(
      expect.objectContaining({ name: 'StorageUnavailable', message }),
    )
  })

  it('is unavailable when the object it calls fails', async () => {
    const storage = openStorage({ STORE: objects }, HOST)
    await expect(storage.customer('a').batch([])).rejects.toMatchObject({
      name: 'StorageUnavailable',
      message: 'the storage object failed: not reached',
    })
  })
})
