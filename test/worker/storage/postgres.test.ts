import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { POSTGRES_MIGRATIONS } from '../../../src/worker/storage/migrations.ts'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { startPostgres, type PostgresServer } from '../../support/postgres.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { startWorkerd, type WorkerdProcess } from '../../support/workerd.ts'
import { describeStorageContract, type EngineUnderTest } from './contract.ts'

async function startInstance(databaseUrl: string, directory?: string): Promise<WorkerdProcess> {
  const script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
  const text = { STORAGE: 'postgres', DATABASE_URL: databaseUrl }
  return startWorkerd({ script, text, ...(directory === undefined ? {} : { directory }) })
}

function storageOf(workerd: WorkerdProcess) {
  const url = `http://127.0.0.1:${workerd.port}/`
  return remoteStorage((body) => fetch(url, { method: 'POST', body }))
}

const ONE = { sql: 'SELECT 1 AS one', params: [] }

async function startTwoInstances(): Promise<EngineUnderTest> {
  const server = await startPostgres()
  const workers: WorkerdProcess[] = []
  const stop = async () => {
    await Promise.all(workers.map((worker) => worker.stop()))
    await server.stop()
  }
  try {
    const databaseUrl = await server.createDatabase()
    const [one, two] = [await startInstance(databaseUrl), await startInstance(databaseUrl)]
    workers.push(one, two)
    return { instances: [storageOf(one), storageOf(two)], stop }
  } catch (error) {
    await stop()
    throw error
  }
}

describeStorageContract('PostgreSQL', startTwoInstances, POSTGRES_MIGRATIONS)

describe('the PostgreSQL pool', () => {
  let server: PostgresServer
  let workerd: WorkerdProcess | undefined
  let databaseUrl = ''

  beforeAll(async () => {
    server = await startPostgres()
    databaseUrl = await server.createDatabase()
  })
  afterAll(async () => {
    await workerd?.stop()
    await server.stop()
  })

  it('is unavailable while no server answers', async () => {
    const nowhere = await startInstance('postgres://postgres@127.0.0.1:1/none')
    const answer = storageOf(nowhere).customer('a').batch([ONE])
    await expect(answer).rejects.toMatchObject({ name: 'StorageUnavailable' })
    await nowhere.stop()
  })

  const CUT = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'confidential-model-router' AND pid <> pg_backend_pid()`

  it('opens new connections when idle ones were cut, without failing a batch', async () => {
    workerd = await startInstance(databaseUrl)
    const db = storageOf(workerd).customer('a')
    await Promise.all(Array.from({ length: 8 }, () => db.batch([ONE])))
    const outside = postgres(databaseUrl, { max: 1, onnotice: () => {} })
    await outside.unsafe(CUT)
    // A connection whose end the worker has not read yet is not an idle one that was cut.
    await delay(200)
    const write = {
      sql: `INSERT INTO secrets (name, value, created_at) VALUES (?, 'x', 0)`,
      params: ['after the cut'],
    }
    expect(await db.batch([write])).toEqual([[]])
    for (let i = 0; i < 8; i++) expect(await db.batch([ONE])).toEqual([[{ one: 1 }]])
    await outside.end()
  })

  it('is unavailable for a batch whose connection is cut while it runs, and writes nothing', async () => {
    workerd ??= await startInstance(databaseUrl)
    const db = storageOf(workerd).customer('a')
    const suicide = { sql: 'SELECT pg_terminate_backend(pg_backend_pid())', params: [] }
    const write = {
      sql: `INSERT INTO secrets (name, value, created_at) VALUES ('cut', 'x', 0)`,
      params: [],
    }
    await expect(db.batch([write, suicide])).rejects.toMatchObject({ name: 'StorageUnavailable' })
    const find = { sql: "SELECT name FROM secrets WHERE name = 'cut'", params: [] }
    for (let i = 0; i < 10; i++) expect(await db.batch([find])).toEqual([[]])
  })

  it('runs the sweep by alarm', async () => {
    workerd ??= await startInstance(databaseUrl)
    const db = storageOf(workerd).directory()
    const names = {
      sql: "SELECT name FROM secrets WHERE name LIKE 'swept-%' ORDER BY name",
      params: [],
    }
    const swept = [{ name: 'swept-1' }, { name: 'swept-2' }]
    await expect.poll(() => db.batch([names]), { timeout: 30_000 }).toEqual([swept])
  })

  it('runs it soon although its alarm is set to a time far ahead, as by a clock that was set back since', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'cmr-test-pool-'))
    const url = await server.createDatabase()
    const before = await startInstance(url, directory)
    const ask = { instance: 'one', customer: null, postponeAlarmMs: 86_400_000 }
    const answer = await fetch(`http://127.0.0.1:${before.port}/`, {
      method: 'POST',
      body: JSON.stringify(ask),
    })
    expect(await answer.json()).toEqual({})
    await before.stop()

    const after = await startInstance(url, directory)
    const db = storageOf(after).directory()
    const swept = { sql: "SELECT name FROM secrets WHERE name = 'swept-1'", params: [] }
    await expect.poll(() => db.batch([swept]), { timeout: 15_000 }).toEqual([[{ name: 'swept-1' }]])
    await after.stop()
    await rm(directory, { recursive: true })
  })
})
