import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Statement } from '../../../src/worker/storage/database.ts'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { startWorkerd, type WorkerdProcess } from '../../support/workerd.ts'
import { describeStorageContract } from './contract.ts'

const WORKER = 'test/support/worker/storage-worker.ts'

function storageOf(workerd: WorkerdProcess, instance?: string) {
  const url = `http://127.0.0.1:${workerd.port}/`
  return remoteStorage((body) => fetch(url, { method: 'POST', body }), instance)
}

function insert(name: string): Statement {
  return {
    sql: 'INSERT INTO secrets (name, value, created_at) VALUES (?, ?, 0)',
    params: [name, 'x'],
  }
}

describeStorageContract('Durable Objects of plain workerd', async () => {
  const script = await bundleForWorkerd(WORKER)
  const workerd = await startWorkerd({ script, text: {} })
  return {
    instances: [storageOf(workerd, 'one'), storageOf(workerd, 'two')],
    stop: () => workerd.stop(),
  }
})

describe('a store object', () => {
  let directory = ''
  let workerd: WorkerdProcess
  const start = async () =>
    startWorkerd({ script: await bundleForWorkerd(WORKER), text: {}, directory })

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'cmr-test-objects-'))
    workerd = await start()
  })
  afterAll(async () => {
    await workerd.stop()
    await rm(directory, { recursive: true, force: true })
  })

  const names = { sql: 'SELECT name FROM secrets ORDER BY name', params: [] }

  it('keeps everything in one file, so that batches that come together are committed together', async () => {
    const storage = storageOf(workerd)
    await storage.customer('a').batch([insert('of-a')])
    await storage.directory().batch([insert('of-directory')])
    expect(await storage.customer('b').batch([names])).toEqual([
      [{ name: 'of-a' }, { name: 'of-directory' }],
    ])
    const files = await readdir(join(directory, 'cmr-ledger'))
    expect(files.filter((file) => /^[0-9a-f]{64}\.sqlite$/.test(file))).toHaveLength(1)
  })

  it('has lost nothing it acknowledged when its process is killed', async () => {
    const storage = storageOf(workerd)
    const writes = Array.from({ length: 40 }, (_, index) =>
      storage.customer('killed').batch([insert(`row-${String(index).padStart(2, '0')}`)]),
    )
    await Promise.all(writes)
    await workerd.stop('SIGKILL')
    workerd = await start()
    const find = { sql: "SELECT name FROM secrets WHERE name LIKE 'row-%'", params: [] }
    const [rows] = await storageOf(workerd).customer('killed').batch([find])
    expect(rows).toHaveLength(40)
  })

  it('runs its sweep by alarm after a write, and again when the sweep asks for it', async () => {
    const db = storageOf(workerd).customer('swept')
    await db.batch([insert('written')])
    const trace = {
      sql: "SELECT name FROM secrets WHERE name LIKE 'swept-%' OR name = 'written' ORDER BY name",
      params: [],
    }
    const swept = [{ name: 'swept-1' }, { name: 'swept-2' }, { name: 'written' }]
    await expect.poll(() => db.batch([trace]), { timeout: 30_000 }).toEqual([swept])
  })

  it.each([
    ['', /^$/],
    [', also where the file is lost in which workerd has the alarms', /^metadata\.sqlite/],
  ])('goes on with its sweeps after a restart%s', async (_what, lost) => {
    const home = await mkdtemp(join(tmpdir(), 'cmr-test-objects-'))
    const script = await bundleForWorkerd(WORKER)
    const before = await startWorkerd({ script, text: {}, directory: home })
    await storageOf(before)
      .customer('swept')
      .batch([insert('of-before')])
    await before.stop('SIGKILL')
    for (const file of await readdir(join(home, 'cmr-ledger'))) {
      if (lost.test(file)) await rm(join(home, 'cmr-ledger', file))
    }
    const after = await startWorkerd({ script, text: {}, directory: home })
    onTestFinished(async () => {
      await after.stop()
      await rm(home, { recursive: true, force: true })
    })
    const rows = ['of-before', 'swept-1', 'swept-2'].map((name) => ({ name }))
    const read = () => storageOf(after).customer('swept').batch([names])
    await expect.poll(read, { timeout: 20_000 }).toEqual([rows])
  })

  it('answers a write whose alarm it could not set as what it is, and sets it at the next write', async () => {
    const fresh = await startWorkerd({ script: await bundleForWorkerd(WORKER), text: {} })
    onTestFinished(() => fresh.stop())
    const ask = { instance: 'one', customer: null, refuseAlarm: true }
    const url = `http://127.0.0.1:${fresh.port}/`
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify(ask) })
    expect(await answer.json()).toEqual({})
    const db = storageOf(fresh).customer('alarm')
    await db.batch([insert('alarm-1')])
    expect(await db.batch([names])).toEqual([[{ name: 'alarm-1' }]])
    await db.batch([insert('alarm-2')])
    const rows = ['alarm-1', 'alarm-2', 'swept-1', 'swept-2'].map((name) => ({ name }))
    await expect.poll(() => db.batch([names]), { timeout: 30_000 }).toEqual([rows])
  })
})
