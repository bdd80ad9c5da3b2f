import type { Fetcher, Socket } from '@cloudflare/workers-types'
import { driverSocket, type DriverSocket } from './driver-socket.ts'

/** A network whose TLS accepts the operator's database authorities and no others. */
export type DatabaseNetwork = Pick<Fetcher, 'connect'>

/** The database was reached, but not over TLS with a certificate that the configured authorities have signed. */
export class DatabaseNotProven extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DatabaseNotProven'
  }
}

/** PostgreSQL manual, "SSLRequest": length 8, code 80877103. */
const SSL_REQUEST = Uint8Array.of(0, 0, 0, 8, 4, 210, 22, 47)
const ACCEPTED = 'S'.charCodeAt(0)

/**
 * Connects to a database and upgrades to TLS before anything else is sent. The server must present a certificate for `host`
 * that the network's authorities have signed.
 * @param timeoutMs for connection and handshake together
 * @throws DatabaseNotProven when the server offers no TLS, or its certificate is not accepted
 * @throws Error when the database does not answer in time
 */
export async function connectProven(
  network: DatabaseNetwork,
  { host, port, timeoutMs }: { host: string; port: number; timeoutMs: number },
): Promise<DriverSocket> {
  const plain = network.connect(`${host}:${port}`, {
    secureTransport: 'starttls',
    allowHalfOpen: false,
  })
  let current = plain
  const deadline = startDeadline(timeoutMs)
  try {
    plain.closed.catch(() => {})
    await Promise.race([requestTls(plain), deadline.passed])
    current = plain.startTls()
    current.closed.catch(() => {})
    await Promise.race([current.opened.catch(handshakeFailed), deadline.passed])
    return driverSocket(current)
  } catch (error) {
    void current.close().catch(() => {})
    throw error
  } finally {
    deadline.stop()
  }
}

function startDeadline(timeoutMs: number) {
  const { promise: passed, reject } = Promise.withResolvers<never>()
  passed.catch(() => {})
  const fail = () => reject(new Error('the database did not complete the connection in time'))
  const timer = setTimeout(fail, timeoutMs)
  return { passed, stop: () => clearTimeout(timer) }
}

/** Reports a failed handshake. The runtime writes the reason only to its own log. */
function handshakeFailed(cause: unknown): never {
  throw new DatabaseNotProven(
    "the database's certificate is not accepted: service.database_ca vouches for none that it shows for its host name",
    { cause },
  )
}

/**
 * Requests TLS. Refuses an answer of more than one byte: an attacker could have injected the rest before TLS began
 * (CVE-2021-23222).
 */
async function requestTls(socket: Socket): Promise<void> {
  const writer = socket.writable.getWriter()
  const reader = socket.readable.getReader()
  await writer.write(SSL_REQUEST)
  const { value } = await reader.read()
  writer.releaseLock()
  reader.releaseLock()
  if (!(value instanceof Uint8Array)) throw new Error('the database closed the connection')
  if (value.length !== 1 || value[0] !== ACCEPTED) {
    throw new DatabaseNotProven('the database offers no TLS, and service.database_ca demands it')
  }
}
