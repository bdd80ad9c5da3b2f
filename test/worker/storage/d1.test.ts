import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { bundleForWorkerd } from '../../support/bundle.ts'
import { remoteStorage } from '../../support/remote-storage.ts'
import { describeStorageContract } from './contract.ts'

describeStorageContract('D1', async () => {
  const script = await bundleForWorkerd('test/support/worker/storage-worker.ts')
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: true,
      script,
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
