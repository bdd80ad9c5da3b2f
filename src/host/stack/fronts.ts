import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { TlsMaterial } from '../../protocol/boot.ts'
import { isLoopbackHost } from '../../protocol/loopback.ts'
import { formatAddress, type ListenAddress } from './listen-address.ts'
import { StartError } from './start-error.ts'
import { openFilesLimit } from './runtime-check.ts'
import { workerNames, type WorkerName } from './worker-name.ts'
import type { Pressure } from '../front/connection-table.ts'
import { AddressUnavailable, openFront, type Front } from '../front/front.ts'
import { frontLimits } from '../front/limits.ts'

/** The fronts of a router: one for each worker, all on the same two addresses. */
export interface Fronts {
  readonly httpPort: number
  readonly httpsPort: number
  of(name: WorkerName): Front
  /** Relays the connections of all fronts to these loopback ports from now on. */
  relayTo(ports: { readonly http: number; readonly https: number }): void
  /** Answers every request on a new connection with 503. */
  refuse(tls: TlsMaterial | null): void
  close(): Promise<void>
}

export interface FrontsOptions {
  readonly http: ListenAddress
  readonly https: ListenAddress
  readonly workers: number
  /** Connections of one source to one worker; by default a quarter of the worker's capacity. */
  readonly connectionsPerSource?: number | undefined
  /** How long a client may leave data unread that waits for it. */
  readonly unreadSeconds?: number | undefined
  /** Called with how many clients were disconnected because they did not read. */
  readonly unread?: (count: number) => void
  /** Prints one line. */
  readonly log: (text: string) => void
}

/**
 * Default for `unreadSeconds`. Linux reports room in a connection only once a third of its send buffer is free. Where
 * the buffer has grown to a few MiB, as towards a proxy on the same machine, a client that reads less than 5 KB per
 * second would seem not to read at all with a shorter limit.
 */
const UNREAD_SECONDS = 300

/**
 * Opens one socket for each front, so that the kernel distributes connections evenly: on a shared socket one front
 * would accept nearly all of them.
 * @throws StartError when an address cannot be opened
 */
export async function openFronts(options: FrontsOptions): Promise<Fronts> {
  const { http, https, workers, unreadSeconds = UNREAD_SECONDS, log, unread = () => {} } = options
  const sourceKey = randomBytes(32)
  const limits = frontLimits(openFilesLimit(), workers, perSource(options))
  const pressed = ({ refused, closed }: Pressure) =>
    log(`  front    too many connections: ${refused} refused, ${closed} idle ones closed`)
  const open = (ports: { readonly http: number; readonly https: number }) =>
    openFront({
      http: { host: http.host, port: ports.http },
      https: { host: https.host, port: ports.https },
      shared: workers > 1,
      limits,
      unreadMs: unreadSeconds * 1_000,
      sourceKey,
      pressed,
      unread,
    }).catch(refuseStart)
  if (workers > 1) await Promise.all([http, https].map(takeAlone)).catch(refuseStart)
  const first = await open({ http: http.port, https: https.port })
  const { httpPort, httpsPort } = first
  const byName = new Map<WorkerName, Front>()
  for (const name of workerNames(workers)) {
    byName.set(name, byName.size === 0 ? first : await open({ http: httpPort, https: httpsPort }))
  }
  return {
    httpPort,
    httpsPort,
    of: (name) => byName.get(name) ?? first,
    relayTo: (ports) => {
      for (const front of byName.values()) front.relayTo(ports)
    },
    refuse: (tls) => {
      for (const front of byName.values()) front.refuse(tls)
    },
    close: async () => {
      await Promise.all([...byName.values()].map((front) => front.close()))
    },
  }
}

/**
 * Listens on an address for a moment without sharing it. The kernel would otherwise let the fronts, whose sockets share
 * their address, share it with those of another router as well, and distribute connections over both.
 * @throws AddressUnavailable when anything listens there
 */
async function takeAlone(address: ListenAddress): Promise<void> {
  // Port 0 always yields a port that is not in use.
  if (address.port === 0) return
  const server = createServer((socket) => socket.destroy()).listen(address)
  try {
    await once(server, 'listening')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw new AddressUnavailable(formatAddress(address), code)
  }
  await new Promise((resolve) => server.close(resolve))
}

function refuseStart(error: unknown): never {
  if (!(error instanceof AddressUnavailable)) throw error
  const why = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${error.code})`
  throw new StartError(`${error.address} ${why}`)
}

/**
 * The limit of connections per source. When both sockets are on loopback, all connections come from this machine: from
 * a proxy in front of the router, or from a developer. A limit per source would then apply to all clients together.
 */
function perSource({ http, https, connectionsPerSource }: FrontsOptions): number | undefined {
  if (connectionsPerSource !== undefined) return connectionsPerSource
  return isLoopbackHost(http.host) && isLoopbackHost(https.host)
    ? Number.MAX_SAFE_INTEGER
    : undefined
}
