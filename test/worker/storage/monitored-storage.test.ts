import { describe, expect, test } from 'vitest'
import {
  StorageUnavailable,
  type Database,
  type Storage,
} from '../../../src/worker/storage/database.ts'
import type { SettlementEntry } from '../../../src/worker/storage/ledger-operations.ts'
import { monitoredStorage } from '../../../src/worker/storage/monitored-storage.ts'

function storageThat(batch: Database['batch']): { storage: Storage; failures: string[] } {
  const failures: string[] = []
  const database = { batch }
  const inner: Storage = { customer: () => database, directory: () => database }
  return { storage: monitoredStorage(inner, (failure) => failures.push(failure)), failures }
}

const failing = (fault: Error) =>
  storageThat(async () => {
    throw fault
  })

describe('a watched storage', () => {
  test('passes rows on', async () => {
    const { storage, failures } = storageThat(async () => [[{ n: 1 }]])
    expect(await storage.customer('c').batch([])).toEqual([[{ n: 1 }]])
    expect(failures).toEqual([])
  })

  test('reports an engine that does not answer, with its own code where it has one', async () => {
    const full = new StorageUnavailable('database or disk is full: SQLITE_FULL (extended: 13)')
    const { storage, failures } = failing(full)
    await expect(storage.customer('c').batch([])).rejects.toBe(full)
    await expect(storage.directory().batch([])).rejects.toBe(full)
    expect(failures).toEqual(['SQLITE_FULL', 'SQLITE_FULL'])
    const gone = failing(new StorageUnavailable('connection refused'))
    await expect(gone.storage.directory().batch([])).rejects.toThrow('connection refused')
    expect(gone.failures).toEqual(['unreachable'])
    const hidden = failing(new StorageUnavailable('permission denied: SQLSTATE 42501'))
    await expect(hidden.storage.directory().batch([])).rejects.toThrow('permission denied')
    expect(hidden.failures).toEqual(['SQLSTATE 42501'])
  })

  test('reports the same of the engine’s own ledger operations', async () => {
    const gone = new StorageUnavailable('away')
    const away = () => Promise.reject(gone)
    const database: Database = {
      batch: async () => [],
      ledger: { admit: away, settle: away, release: async () => true },
    }
    const failures: string[] = []
    const inner: Storage = { customer: () => database, directory: () => database }
    const storage = monitoredStorage(inner, (failure) => failures.push(failure))
    const { ledger } = storage.customer('c')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is only passed on
    await expect(ledger?.settle({} as SettlementEntry)).rejects.toBe(gone)
    expect(await ledger?.release('r1')).toBe(true)
    expect(failures).toEqual(['unreachable'])
  })

  test('is silent about a statement that was refused', async () => {
    const { storage, failures } = failing(new Error('SQLITE_CONSTRAINT'))
    await expect(storage.customer('c').batch([])).rejects.toThrow('SQLITE_CONSTRAINT')
    expect(failures).toEqual([])
  })
})
