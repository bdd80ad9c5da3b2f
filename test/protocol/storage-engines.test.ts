import { describe, expect, it } from 'vitest'
import { engineOfSecrets } from '../../src/protocol/storage-engines.ts'

describe('the storage engine that is not named', () => {
  it.each([
    ['one worker', {}, 1, 'durable-object'],
    ['several workers', {}, 2, 'sqlite'],
    ['an address of PostgreSQL', { DATABASE_URL: 'postgres://db/x' }, 1, 'postgres'],
    ['several workers and that', { DATABASE_URL: 'postgres://db/x' }, 4, 'postgres'],
  ])('of %s', (_what, secrets, workers, engine) => {
    expect(engineOfSecrets(secrets, workers)).toBe(engine)
  })
})
