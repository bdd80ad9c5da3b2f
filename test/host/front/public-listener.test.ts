import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ClientConnection } from '../../../src/host/front/client-connection.ts'
import { ConnectionTable } from '../../../src/host/front/connection-table.ts'
import { PublicListener } from '../../../src/host/front/public-listener.ts'
import { freePort } from '../../support/free-port.ts'
import { listen } from '../../support/listen.ts'
import { until } from '../../support/stack.ts'

const CLIENTS = 10

let listener: PublicListener
let port: number
/** How often a worker was called for a client. */
let attempts: number
const clients: Socket[] = []
/** The router's sides of the clients' connections. */
let table: ConnectionTable<ClientConnection>
const entered: ClientConnection[] = []

class WatchedTable extends ConnectionTable<ClientConnection> {
  override add(connection: ClientConnection): boolean {
    entered.push(connection)
    return super.add(connection)
  }
}

beforeEach(async () => {
  attempts = 0
  const limits = { connections: 100, relayed: 100, perSource: 100 }
  table = new WatchedTable(limits, () => 0)
  listener = new PublicListener(
    {
      table,
      now: () => 0,
      sourceAddress: () => {
        attempts += 1
        return '127.0.0.1'
      },
      times: { lingerMs: 60_000, unreadMs: 60_000 },
      unread: () => {},
    },
    false,
  )
  port = await listener.listen('127.0.0.1', 0, false)
})
afterEach(() => {
  // Else it would offer those who wait to a worker that is not there for as long as the process runs.
  listener.relayTo(undefined)
  for (const socket of clients.splice(0)) socket.destroy()
  entered.length = 0
})

async function sayHello(): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port })
  clients.push(socket)
  await once(socket, 'connect')
  socket.write('hello')
  return socket
}

describe('clients whose worker has died', () => {
  test('are offered to its successor ten times a second each, however many they are', async () => {
    listener.relayTo(await freePort())
    const begun = performance.now()
    for (let count = 0; count < CLIENTS; count += 1) {
      await sayHello()
      await delay(9)
    }
    await delay(1_000)
    const most = CLIENTS * (2 + (performance.now() - begun) / 100)
    expect(attempts).toBeGreaterThan(CLIENTS)
    expect(attempts).toBeLessThan(most)
    for (const { socket } of entered) expect(socket.listenerCount('close')).toBeLessThan(5)
  })

  test('reach it once it is there', async () => {
    listener.relayTo(await freePort())
    const waiting = await sayHello()
    await until(() => attempts >= 3)
    const worker = createServer((socket) => {
      socket.on('error', () => {})
      socket.pipe(socket)
    })
    listener.relayTo(await listen(worker))
    expect(String((await once(waiting, 'data'))[0])).toBe('hello')
    worker.close()
  })
})
