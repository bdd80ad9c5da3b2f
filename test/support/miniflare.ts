import { Miniflare, Response as MiniflareResponse, convertV4MiniflareOptions } from 'miniflare'
import { createLinkBinding, type LinkEnd } from '../../scripts/stack/link-binding.ts'

/** The worker's bundle under Miniflare. */
export interface MiniflareHost {
  readonly url: string
  stop(): Promise<void>
}

/** Runs a bundle under Miniflare, its link bound through a function that does the mTLS. */
export async function startMiniflare(script: string, link: LinkEnd): Promise<MiniflareHost> {
  const binding = createLinkBinding(link, (body, init) => new MiniflareResponse(body, init))
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: '127.0.0.1',
      port: 0,
      modules: [{ type: 'ESModule', path: 'worker.js', contents: script }],
      modulesRoot: '/',
      compatibilityDate: '2026-11-17',
      bindings: { STORAGE: 'durable-object' },
      durableObjects: { STORE: { className: 'StoreObject', useSQLite: true } },
      serviceBindings: { LINK: (request) => binding.fetch(request) },
    }),
  )
  const url = await miniflare.ready
  return {
    url: url.origin,
    stop: async () => {
      await miniflare.dispose()
      await binding.close()
    },
  }
}
