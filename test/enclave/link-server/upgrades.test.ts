import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startLinkServer, type LinkServer } from '../../../src/enclave/link-server/server.ts'
import type { UpgradeListeners } from '../../../src/enclave/link-server/upgrades.ts'
import {
  CHUNKS_PATH,
  MAX_MESSAGE_BYTES,
  MESSAGES_PATH,
} from '../../../src/protocol/link-messages.ts'
import { makeCertificatePair, type CertificatePair } from '../link-material.ts'
import type { LinkServerPlan } from '../../../src/protocol/boot.ts'
import { callMessage, openMessages, textOf } from './message-client.ts'

const ID = '7c9b7b0e-6d2b-4b0e-9d57-1a6f7cc7a6a1'

let own: CertificatePair
let worker: CertificatePair
let stranger: CertificatePair
/** One that takes both, and one for which there is nothing. */
let server: LinkServer
let closed: LinkServer
const accepted: string[] = []

const both: UpgradeListeners = {
  messages: ({ body }, caller) => caller.answer({ status: 200, headers: {} }, body),
  chunks: (id, socket) => {
    accepted.push(id)
    socket.on('error', () => {})
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  },
}

const start = (listeners?: UpgradeListeners) => {
  const plan: LinkServerPlan = {
    port: 0,
    host: '127.0.0.1',
    serverCertPem: own.certPem,
    serverKeyPem: own.keyPem,
    workerCertPem: worker.certPem,
  }
  return startLinkServer(plan, (_request, response) => response.end('{}'), listeners)
}

beforeAll(async () => {
  ;[own, worker, stranger] = await Promise.all([
    makeCertificatePair('enclave'),
    makeCertificatePair('worker'),
    makeCertificatePair('worker'),
  ])
  server = await start(both)
  closed = await start()
})
beforeEach(() => void accepted.splice(0))
afterAll(() => Promise.all([server.close(), closed.close()]))

const open = (path: string, { port } = server, client = worker) =>
  openMessages(port, own.certPem, client, path)

describe('a connection of the link that is upgraded', () => {
  it('is one for chunks under the id in its path', async () => {
    const client = await open(`${CHUNKS_PATH}/${ID}`)
    expect(accepted).toEqual([ID])
    client.send(callMessage(1, '', 'chunk'))
    expect(textOf(await client.next())).toBe('chunk')
    client.socket.terminate()
  })

  it('is one for messages at their path, and none for chunks', async () => {
    const client = await open(MESSAGES_PATH)
    client.send(callMessage(1, '', 'message'))
    expect(textOf(await client.next())).toBe('message')
    expect(accepted).toEqual([])
    client.socket.terminate()
  })

  it.each([
    CHUNKS_PATH,
    `${CHUNKS_PATH}/`,
    `${CHUNKS_PATH}/${ID.slice(1)}`,
    `${CHUNKS_PATH}/${ID}0`,
    `${CHUNKS_PATH}/${ID}/`,
    `${CHUNKS_PATH}/${ID}?x=1`,
    `${CHUNKS_PATH}/${ID.toUpperCase()}`,
    `/x${CHUNKS_PATH}/${ID}`,
    `${MESSAGES_PATH}/${ID}`,
  ])('is closed before it is open at %s', async (path) => {
    await expect(open(path)).rejects.toThrow('socket hang up')
    expect(accepted).toEqual([])
  })

  it.each([MESSAGES_PATH, `${CHUNKS_PATH}/${ID}`])(
    'is closed before it is open at %s where there is nothing for it',
    async (path) => {
      await expect(open(path, closed)).rejects.toThrow('socket hang up')
    },
  )

  it('is closed before it is open for any other peer', async () => {
    const refused = open(`${CHUNKS_PATH}/${ID}`, server, stranger)
    await expect(refused).rejects.toThrow(/alert|reset|hang up/)
    expect(accepted).toEqual([])
  })

  it('is closed for a frame that is larger than any message', async () => {
    const client = await open(`${CHUNKS_PATH}/${ID}`)
    client.socket.send(new Uint8Array(MAX_MESSAGE_BYTES + 1))
    expect(await client.closed).toBe(true)
  })

  it('is closed with its server', async () => {
    const other = await start(both)
    const client = await open(`${CHUNKS_PATH}/${ID}`, other)
    await other.close()
    expect(await client.closed).toBe(true)
  })
})
