import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { UNSWEPT_LEDGER, startLedgerProcess } from '../../support/ledger-process.ts'
import { startPostgres } from '../../support/postgres.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { startWorkerd, type WorkerdProcess } from '../../support/workerd.ts'
import { describeLedgerContract } from './ledger-contract.ts'

const WORKER = 'test/support/worker/storage-worker.ts'

describeLedgerContract('Durable Objects of plain workerd', async () => {
  const workerd = await startWorkerd({ script: await bundleForWorkerd(WORKER), text: {} })
  return {
    instances: [storageOf(workerd, 'one'), storageOf(workerd, 'two')],
    stop: () => workerd.stop(),
  }
})

describeLedgerContract('D1', async () => {
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: true,
      script: await bundleForWorkerd(WORKER),
      compatibilityDate: '2026-11-17',
      bindings: { STORAGE: 'd1' },
      d1Databases: ['DB'],
    }),
  )
  const fetcher = (body: string) =>
    miniflare.dispatchFetch('http://worker/', { method: 'POST', body })
  return {
    instances: [remoteStorage(fetcher, 'one'), remoteStorage(fetcher, 'two')],
    stop: () => miniflare.dispose(),
  }
})

describeLedgerContract('the SQLite ledger process, from two worker processes', async () => {
  const script = await bundleForWorkerd(WORKER)
  const ledger = await startLedgerProcess(UNSWEPT_LEDGER)
  const options = { script, text: { STORAGE: 'sqlite' }, ledger: ledger.link }
  const [left, right] = [await startWorkerd(options), await startWorkerd(options)]
  return {
    instances: [storageOf(left, 'one'), storageOf(right, 'one')],
    stop: async () => {
      await Promise.all([left.stop(), right.stop()])
      await ledger.stop()
    },
  }
})

describeLedgerContract('PostgreSQL, from two worker processes', async () => {
  const script = await bundleForWorkerd(WORKER)
  const server = await startPostgres()
  const url = await server.createDatabase()
  const text = { STORAGE: 'postgres', DATABASE_URL: url }
  const workers = [await startWorkerd({ script, text }), await startWorkerd({ script, text })]
  const [left, right] = workers.map((worker) => storageOf(worker, 'one'))
  if (!left || !right) throw new Error('two workers were started')
  return {
    instances: [left, right],
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.stop()))
      await server.stop()
    },
  }
})

function storageOf(workerd: WorkerdProcess, instance: string) {
  const url = `http://127.0.0.1:${workerd.port}/`
  return remoteStorage((body) => fetch(url, { method: 'POST', body }), instance)
}
