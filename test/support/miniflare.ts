import { Miniflare, Response as MiniflareResponse, convertV4MiniflareOptions } from 'miniflare'
import { createLinkBinding, type LinkEnd } from '../../scripts/stack/link-binding.ts'

/** The worker's bundle under Miniflare. */
export interface MiniflareHost {
  readonly url: string
  /** Has the cron trigger fire as if it were that time. */
  cron(time: Date): Promise<{ readonly outcome: string }>
  stop(): Promise<void>
}

export interface MiniflareStorage {
  readonly engine: 'durable-object' | 'd1'
  /** Where the D1 database lives; in memory when absent. */
  readonly directory?: string
}

/** Runs a bundle under Miniflare, its link bound through a function that does the mTLS. */
export async function startMiniflare(
  script: string,
  link: LinkEnd,
  storage: MiniflareStorage = { engine: 'durable-object' },
): Promise<MiniflareHost> {
  const binding = createLinkBinding(link, (body, init) => new MiniflareResponse(body, init))
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: '127.0.0.1',
      port: 0,
      modules: [{ type: 'ESModule', path: 'worker.js', contents: script }],
      modulesRoot: '/',
      compatibilityDate: '2026-11-17',
      bindings: { STORAGE: storage.engine },
      durableObjects: { STORE: { className: 'StoreObject', useSQLite: true } },
      d1Databases: storage.engine === 'd1' ? ['DB'] : [],
      ...(storage.directory === undefined ? {} : { d1Persist: storage.directory }),
      serviceBindings: { LINK: (request) => binding.fetch(request) },
    }),
  )
  const url = await miniflare.ready
  return {
    url: url.origin,
    cron: async (time) => (await miniflare.getWorker()).scheduled({ scheduledTime: time }),
    stop: async () => {
      await miniflare.dispose()
      await binding.close()
    },
  }
}
