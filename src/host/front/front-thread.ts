import { isIPv6 } from 'node:net'
import { platform } from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import type { ClientConnection } from './client-connection.ts'
import type { TlsMaterial } from '../../protocol/boot.ts'
import { ConnectionTable } from './connection-table.ts'
import { PublicListener } from './public-listener.ts'
import { openUnavailableServer } from './unavailable-server.ts'
import { frontPlanSchema, toFrontSchema, type FromFront } from './messages.ts'
import { makeSourceAddress } from './source-address.ts'
import { untilQuiet } from './until-quiet.ts'

/** The thread of a `Front`: two sockets, one connection table for both, and the table's clock. */

const plan = frontPlanSchema.parse(workerData)

const TICK_MS = 1_000
const PRESSURE_EVERY_SECONDS = 10

/** How long a connection that the worker has ended may be idle before it is closed, ms. */
const LINGER_MS = 60_000

let seconds = 0
const now = () => seconds

const table = new ConnectionTable<ClientConnection>(plan.limits, now)
// Other systems have only one loopback address, so the worker cannot distinguish clients there.
const sharedAddress = () => '127.0.0.1'
const sourceAddress = platform === 'linux' ? makeSourceAddress(plan.sourceKey) : sharedAddress
const times = { lingerMs: LINGER_MS, unreadMs: plan.unreadMs }
let unread = 0
const tools = { table, now, sourceAddress, times, unread: () => void (unread += 1) }
const http = new PublicListener(tools, false)
const https = new PublicListener(tools, true)

setInterval(() => {
  seconds += 1
  table.closeExpired()
  if (seconds % PRESSURE_EVERY_SECONDS !== 0) return
  const pressure = table.takePressure()
  if (pressure.refused + pressure.closed > 0) send({ type: 'pressed', ...pressure })
  if (unread > 0) send({ type: 'unread', count: unread })
  unread = 0
}, TICK_MS)

let refuses = false

parentPort?.on('message', (received) => {
  const message = toFrontSchema.parse(received)
  if (message.type === 'refuse') {
    refuses = true
    void refuse(message.tls)
  } else if (!refuses) {
    // Ignored while draining: this concerns a worker that was being started or replaced when the drain began.
    http.relayTo(message.to?.http)
    https.relayTo(message.to?.https)
  }
  if (message.type === 'relay' && message.to === null) void sayWhenQuiet()
})

async function sayWhenQuiet(): Promise<void> {
  await untilQuiet(() => table.handshaking > 0, performance.now.bind(performance))
  send({ type: 'quiet' })
}

async function refuse(tls: TlsMaterial | null): Promise<void> {
  http.relayTo(await openUnavailableServer())
  https.relayTo(tls === null ? undefined : await openUnavailableServer(tls))
}

function send(message: FromFront): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(message)
}

async function open(listener: PublicListener, { host, port }: typeof plan.http): Promise<number> {
  try {
    return await listener.listen(host, port, plan.shared)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    const name = isIPv6(host) ? `[${host}]` : host
    send({ type: 'failed', address: `${name}:${port}`, code })
    throw error
  }
}

open(http, plan.http)
  .then(async (port) => send({ type: 'open', http: port, https: await open(https, plan.https) }))
  .catch(() => {
    // `open` has already sent the failure.
  })
