import { afterAll, beforeAll, expect, it } from 'vitest'
import { ConnectionPool } from '../../../src/enclave/egress/connection-pool.ts'
import { openPinnedConnection } from '../../../src/enclave/egress/pinned-connection.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { peerSpkiSha256 } from '../../../src/enclave/outbound/peer-key.ts'
import { connectTls, type TlsTarget } from '../../../src/enclave/outbound/tls-connect.ts'
import { poolHasLooked } from '../../support/pool-look.ts'
import { startByteProvider, type ByteProvider } from '../../support/byte-provider.ts'

let provider: ByteProvider
let tls: TlsTarget
let spkiSha256: string

beforeAll(async () => {
  provider = await startByteProvider(await makeTlsIdentity([], new Date()), () => {})
  const { port } = provider
  tls = { host: '127.0.0.1', port, webPki: false, connectMs: 30_000, now: Date.now }
  const socket = await connectTls(tls)
  spkiSha256 = (await peerSpkiSha256(socket)) ?? ''
  socket.destroy()
})
afterAll(() => provider.close())

const poolOf = () =>
  new ConnectionPool(() =>
    openPinnedConnection(`https://127.0.0.1:${provider.port}`, tls, spkiSha256),
  )

it('gives a connection that was given back to the next exchange', async () => {
  const pool = poolOf()
  const connection = await pool.take()
  pool.release(connection)
  await poolHasLooked()
  expect(await pool.take()).toBe(connection)
  connection.close()
})

it('gives no connection that ended in this very moment, before that is reported', async () => {
  const pool = poolOf()
  const [older, ended] = [await pool.take(), await pool.take()]
  pool.release(older)
  pool.release(ended)
  await poolHasLooked()
  ended.close()
  expect(await pool.take()).toBe(older)
  pool.release(older)
  await poolHasLooked()
  older.close()
  const opened = await pool.take()
  expect([older, ended]).not.toContain(opened)
  expect(opened.isOpen).toBe(true)
  opened.close()
})

it('keeps no connection once it is retired', async () => {
  const pool = poolOf()
  const [idle, busy] = [await pool.take(), await pool.take()]
  pool.release(idle)
  await poolHasLooked()
  pool.retire()
  expect([idle.isOpen, busy.isOpen]).toEqual([false, true])
  pool.release(busy)
  await poolHasLooked()
  expect(busy.isOpen).toBe(false)
})
