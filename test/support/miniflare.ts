import { Miniflare, Response as MiniflareResponse, convertV4MiniflareOptions } from 'miniflare'
import { createLinkFetch, type LinkEnd } from '../../scripts/stack/link-fetch.ts'

/** The worker's bundle under Miniflare. */
export interface MiniflareHost {
  readonly url: string
  stop(): Promise<void>
}

/**
 * Runs a bundle under Miniflare, its link bound through a function that does the mTLS. Miniflare's own
 * `external.https` drops the certificates and talks plain HTTP.
 */
export async function startMiniflare(script: string, link: LinkEnd): Promise<MiniflareHost> {
  const linkFetch = createLinkFetch(link)
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: '127.0.0.1',
      port: 0,
      modules: [{ type: 'ESModule', path: 'worker.js', contents: script }],
      modulesRoot: '/',
      compatibilityDate: '2026-11-17',
      bindings: { STORAGE: 'durable-object' },
      durableObjects: { STORE: { className: 'StoreObject', useSQLite: true } },
      serviceBindings: {
        LINK: async (request) => {
          const body = await request.arrayBuffer()
          const answer = await linkFetch.fetch(request.url, {
            method: request.method,
            headers: Object.fromEntries(request.headers),
            ...(body.byteLength === 0 ? {} : { body }),
          })
          const { status, headers } = answer
          return new MiniflareResponse(await answer.arrayBuffer(), {
            status,
            headers: Object.fromEntries(headers),
          })
        },
      },
    }),
  )
  const url = await miniflare.ready
  return {
    url: url.origin,
    stop: async () => {
      await miniflare.dispose()
      await linkFetch.close()
    },
  }
}
