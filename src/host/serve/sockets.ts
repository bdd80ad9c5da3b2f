import type { TlsMaterial } from '../../protocol/boot.ts'
import type { ListenAddress } from '../stack/listen-address.ts'
import { openListeningSocket, type ListeningSocket } from '../stack/listening-socket.ts'
import type { InheritedSockets } from '../stack/start-worker.ts'
import { workerNames, type WorkerName } from '../stack/worker-name.ts'
import type { ServeOptions } from './options.ts'

/** The public sockets of a router: for each worker one of either kind, all on the same two addresses. */
export interface Sockets {
  readonly httpPort: number
  readonly httpsPort: number
  /** The descriptors that a worker inherits. */
  of(name: WorkerName): InheritedSockets
  /** Answers every further request with 503. */
  refuse(tls: TlsMaterial | null): void
  close(): Promise<void>
}

/**
 * Workers that accepted on one socket would take connections as they come to the front, and one would take nearly
 * all. With a socket each, the kernel deals them out.
 * @throws StartError when an address cannot be opened
 */
export async function openSockets(
  options: Pick<ServeOptions, 'http' | 'https' | 'workers'>,
): Promise<Sockets> {
  const http = await openShared(options.http, false, options.workers)
  const https = await openShared(options.https, true, options.workers)
  const names = workerNames(options.workers)
  return {
    httpPort: portOf(http),
    httpsPort: portOf(https),
    of: (name) => {
      const index = names.indexOf(name)
      return { http: http[index]?.fd ?? -1, https: https[index]?.fd ?? -1 }
    },
    refuse: (tls) => {
      for (const socket of http) socket.refuse(null)
      for (const socket of https) socket.refuse(tls)
    },
    close: async () => {
      await Promise.all([...http, ...https].map((socket) => socket.close()))
    },
  }
}

async function openShared(
  { host, port }: ListenAddress,
  secure: boolean,
  count: number,
): Promise<ListeningSocket[]> {
  const kind = { secure, shared: count > 1 }
  const first = await openListeningSocket({ host, port }, kind)
  const sockets = [first]
  while (sockets.length < count) {
    sockets.push(await openListeningSocket({ host, port: first.port }, kind))
  }
  return sockets
}

function portOf([first]: readonly ListeningSocket[]): number {
  return first?.port ?? 0
}
