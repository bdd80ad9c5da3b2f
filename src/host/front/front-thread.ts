import { platform } from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import type { ClientConnection } from './client-connection.ts'
import type { TlsMaterial } from '../../protocol/boot.ts'
import { ConnectionTable } from './connection-table.ts'
import { Entrance } from './entrance.ts'
import { openFarewell } from './farewell.ts'
import { frontPlanSchema, toFrontSchema, type FromFront } from './messages.ts'
import { makeSourceAddress } from './source-address.ts'

/** The thread behind a `Front`: its two sockets, one table of connections for both, and the clock that table goes by. */

const plan = frontPlanSchema.parse(workerData)

const TICK_MS = 1_000
const PRESSURE_EVERY_SECONDS = 10

let seconds = 0
const now = () => seconds

const table = new ConnectionTable<ClientConnection>(plan.limits, now)
// Other systems have one address on loopback, and clients cannot be told apart there.
const everybody = () => '127.0.0.1'
const sourceAddress = platform === 'linux' ? makeSourceAddress(plan.sourceKey) : everybody
const tools = { table, now, sourceAddress }
const http = new Entrance(tools, false)
const https = new Entrance(tools, true)

setInterval(() => {
  seconds += 1
  table.closeLate()
  if (seconds % PRESSURE_EVERY_SECONDS !== 0) return
  const pressure = table.takePressure()
  if (pressure.refused + pressure.closed > 0) tell({ type: 'pressed', ...pressure })
}, TICK_MS)

parentPort?.on('message', (received) => {
  const message = toFrontSchema.parse(received)
  if (message.type === 'refuse') {
    void refuse(message.tls)
  } else {
    http.relayTo(message.to?.http)
    https.relayTo(message.to?.https)
  }
})

async function refuse(tls: TlsMaterial | null): Promise<void> {
  http.relayTo(await openFarewell())
  https.relayTo(tls === null ? undefined : await openFarewell(tls))
}

function tell(message: FromFront): void {
  // eslint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(message)
}

async function open(entrance: Entrance, { host, port }: typeof plan.http): Promise<number> {
  try {
    return await entrance.listen(host, port, plan.shared)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    tell({ type: 'failed', address: `${host}:${port}`, code })
    throw error
  }
}

open(http, plan.http)
  .then(async (port) => tell({ type: 'open', http: port, https: await open(https, plan.https) }))
  .catch(() => {
    // It has been told.
  })
