import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Miniflare, Response as MiniflareResponse, convertV4MiniflareOptions } from 'miniflare'
import { createLinkBinding, type LinkEnd } from '../../src/host/stack/link-binding.ts'

/** The worker's bundle under Miniflare. */
export interface MiniflareHost {
  readonly url: string
  /** Has the cron trigger fire as if it were that time. */
  cron(time: Date): Promise<{ readonly outcome: string }>
  stop(): Promise<void>
}

export interface MiniflareStorage {
  readonly engine: 'durable-object' | 'd1'
  /** Where rows live; in memory when absent. */
  readonly directory?: string
  /** Any free one when absent. */
  readonly port?: number
}

/** Runs a bundle under Miniflare, its link bound through a function that does the mTLS. */
export async function startMiniflare(
  script: string,
  link: LinkEnd,
  storage: MiniflareStorage = { engine: 'durable-object' },
): Promise<MiniflareHost> {
  const binding = createLinkBinding(link, (body, init) => new MiniflareResponse(body, init))
  const miniflare = new Miniflare({
    ...convertV4MiniflareOptions({
      host: '127.0.0.1',
      port: storage.port ?? 0,
      handleStructuredLogs: () => {},
      modules: [{ type: 'ESModule', path: 'worker.js', contents: script }],
      modulesRoot: '/',
      compatibilityDate: '2026-11-17',
      bindings: { STORAGE: storage.engine },
      durableObjects: { STORE: { className: 'StoreObject', useSQLite: true } },
      d1Databases: storage.engine === 'd1' ? ['DB'] : [],
      serviceBindings: { LINK: (request) => binding.fetch(request) },
    }),
    ...(storage.directory === undefined ? {} : { resourcePersistencePath: storage.directory }),
  })
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

/** The processes of workerd that the Miniflares of this process run. */
export async function workerdsOfMiniflare(): Promise<readonly number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid=,comm='])
  return stdout.split('\n').flatMap((line) => {
    const [pid, parent, command] = line.trim().split(/\s+/)
    return Number(parent) === process.pid && command === 'workerd' ? [Number(pid)] : []
  })
}
