import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeLinkCertificates } from '../../../src/host/stack/link-certificates.ts'
import { startLedger } from '../../../src/host/stack/start-ledger.ts'
import { admit } from '../../../src/worker/settle/admit.ts'
import { commitSettlement, releaseReservation } from '../../../src/worker/settle/ledger.ts'
import type { Statement, Storage } from '../../../src/worker/storage/database.ts'
import { bundleForWorkerd } from '../../support/bundle.ts'
import {
  OTHER_LEDGER,
  startLedgerProcess,
  type LedgerProcess,
} from '../../support/ledger-process.ts'
import {
  addCustomer,
  askOf,
  readLedgerTotals,
  rejectionOf,
  settlementOf,
} from '../../support/ledger.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { startWorkerd, type WorkerdProcess } from '../../support/workerd.ts'
import { describeStorageContract } from './contract.ts'

const UNAVAILABLE = { name: 'StorageUnavailable' }

async function startInstance(link: LedgerProcess['link']): Promise<WorkerdProcess> {
  const script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
  return startWorkerd({ script, text: { STORAGE: 'sqlite' }, ledger: link })
}

function storageOf(workerd: WorkerdProcess): Storage {
  const url = `http://127.0.0.1:${workerd.port}/`
  return remoteStorage((body) => fetch(url, { method: 'POST', body }))
}

function insert(name: string): Statement {
  return {
    sql: 'INSERT INTO secrets (name, value, created_at) VALUES (?, ?, 0)',
    params: [name, 'x'],
  }
}

function find(like: string): Statement {
  return { sql: 'SELECT name FROM secrets WHERE name LIKE ? ORDER BY name', params: [like] }
}

describeStorageContract('the SQLite ledger process, from two worker processes', async () => {
  const ledger = await startLedgerProcess()
  const workers = [await startInstance(ledger.link), await startInstance(ledger.link)] as const
  return {
    instances: [storageOf(workers[0]), storageOf(workers[1])],
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.stop()))
      await ledger.stop()
    },
  }
})

describe('the ledger process', () => {
  let ledger: LedgerProcess
  let workerd: WorkerdProcess
  let storage: Storage

  beforeAll(async () => {
    ledger = await startLedgerProcess()
    workerd = await startInstance(ledger.link)
    storage = storageOf(workerd)
  })
  afterAll(async () => {
    await workerd.stop()
    await ledger.stop()
  })

  it('has lost nothing it acknowledged when it is killed, and serves its workers again on the same port', async () => {
    const db = storage.customer('killed')
    const writes = Array.from({ length: 40 }, (_, index) => db.batch([insert(`row-${index}`)]))
    await Promise.all(writes)
    await ledger.restart()
    const [rows] = await db.batch([find('row-%')])
    expect(rows).toHaveLength(40)
  })

  it('still holds what open requests reserved when it is killed, and bills them once', async () => {
    const db = storage.customer('acme')
    const key = await addCustomer(db, { balance: 100n })
    // The sweep of the real process would release what expired before today.
    const terms = { nano: 40n, now: Date.now() }
    await admit(db, askOf(key, 'ended', terms))
    await commitSettlement(db, settlementOf(key, 'ended', { nano: 10n }))
    await admit(db, askOf(key, 'released', terms))
    await releaseReservation(db, 'released')
    for (const id of ['first', 'second']) await admit(db, askOf(key, id, terms))
    await ledger.restart()
    const refused = await rejectionOf(admit(db, askOf(key, 'third', terms)))
    expect(refused).toMatchObject({ status: 402, code: 'insufficient_balance' })
    expect(await readLedgerTotals(db)).toEqual({ balance: 90n, reserved: 80n, rows: 1, open: 2 })
    await commitSettlement(db, settlementOf(key, 'first', { nano: 30n }))
    await ledger.restart()
    await commitSettlement(db, settlementOf(key, 'first', { nano: 30n }))
    await releaseReservation(db, 'second')
    expect(await readLedgerTotals(db)).toEqual({ balance: 60n, reserved: 0n, rows: 2, open: 0 })
  })

  it('fails what is open when it is killed, which is then billed once however often it is asked again', async () => {
    const db = storage.customer('open')
    const key = await addCustomer(db, { id: 'open', balance: 1_000n })
    const ids = Array.from({ length: 40 }, (_, index) => `open-${index}`)
    const terms = { nano: 10n, now: Date.now() }
    await Promise.all(ids.map((id) => admit(db, askOf(key, id, terms))))
    const settleAll = () => {
      const settled = ids.map((id) => commitSettlement(db, settlementOf(key, id, { nano: 10n })))
      return Promise.allSettled(settled)
    }
    const open = settleAll()
    await ledger.restart()
    const failed = (await open).flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    for (const reason of failed) expect(reason).toMatchObject(UNAVAILABLE)
    const statuses = async () => (await settleAll()).map(({ status }) => status)
    await expect.poll(statuses, { timeout: 30_000 }).not.toContain('rejected')
    const totals = await readLedgerTotals(db, 'open')
    expect(totals).toEqual({ balance: 600n, reserved: 0n, rows: 40, open: 0 })
  })

  it('answers operations of one moment whose answers together are larger than a message may be', async () => {
    const db = storage.customer('large')
    const models = Array.from({ length: 100 }, (_, index) => `${index}-${'x'.repeat(90)}`)
    const key = await addCustomer(db, { id: 'large', balance: 10_000n })
    await db.batch([
      {
        sql: 'UPDATE api_keys SET models = ? WHERE key_prefix = ?',
        params: [JSON.stringify(models), key.keyPrefix],
      },
    ])
    const ids = Array.from({ length: 120 }, (_, index) => `large-${index}`)
    const terms = { nano: 1n, now: Date.now() }
    const ask = (id: string) => admit(db, askOf(key, id, terms))
    await Promise.all(ids.map(ask))
    expect(await readLedgerTotals(db, 'large')).toMatchObject({ reserved: 120n, open: 120 })
  })

  it('is unavailable to its workers while it does not run', async () => {
    const gone = await startLedgerProcess()
    const orphan = await startInstance(gone.link)
    await gone.stop()
    const db = storageOf(orphan).customer('a')
    await expect(db.batch([insert('lost')])).rejects.toMatchObject(UNAVAILABLE)
    await expect(db.batch([find('%')])).rejects.toMatchObject(UNAVAILABLE)
    await orphan.stop()
  })

  it('answers no peer without the one certificate of its workers', async () => {
    const { worker } = await makeLinkCertificates(Date.now())
    const stranger = await startInstance({ ...ledger.link, worker })
    const answer = storageOf(stranger)
      .customer('a')
      .batch([insert('strange')])
    await expect(answer).rejects.toMatchObject(UNAVAILABLE)
    expect(await storage.directory().batch([find('strange')])).toEqual([[]])
    await stranger.stop()
  })

  it('is not believed by its workers with another certificate than the one they know', async () => {
    const { server } = await makeLinkCertificates(Date.now())
    const deceived = await startInstance({ ...ledger.link, serverCertPem: server.certPem })
    const answer = storageOf(deceived)
      .customer('a')
      .batch([find('%')])
    await expect(answer).rejects.toMatchObject(UNAVAILABLE)
    await deceived.stop()
  })

  const startIn = async (directory: string) => {
    const { server, worker } = await makeLinkCertificates(Date.now())
    return startLedger(
      {
        directory,
        others: [OTHER_LEDGER],
        link: {
          port: 0,
          host: '127.0.0.1',
          serverCertPem: server.certPem,
          serverKeyPem: server.keyPem,
          workerCertPem: worker.certPem,
        },
      },
      ledger.logFile,
    )
  }

  it('is the only one on its files: a second one refuses to start, by name', async () => {
    await expect(startIn(ledger.directory)).rejects.toThrow(
      /^another process writes the ledger .*ledger\.sqlite$/,
    )
  })

  it('refuses to start, by name, beside the ledger of another engine', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'cmr-test-ledger-'))
    const other = join(directory, OTHER_LEDGER)
    writeFileSync(other, '')
    await expect(startIn(directory)).rejects.toThrow(`${other} is the ledger of another engine`)
    expect(readdirSync(directory)).toEqual([OTHER_LEDGER])
    rmSync(directory, { recursive: true })
  })
})
