import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openRequestsOf } from '../support/open-requests.ts'
import { RawClient, rawRequest } from '../support/raw-client.ts'
import { until } from '../support/stack.ts'
import { openWorld, type Customer, type World } from '../faults/world.ts'

/** What a client that leaves at a bad moment must not keep from its customer's next requests. */

let world: World
beforeAll(async () => {
  world = await openWorld([{ model: 'sound', at: 'alpha' }])
})
afterAll(() => world.close())

const openRequests = () => openRequestsOf(world.stack)

/** A client that asks for its usage as a file. */
async function exporting({ key }: Customer, method: 'GET' | 'HEAD'): Promise<RawClient> {
  const client = await RawClient.connect(world.stack.local.base_url)
  onTestFinished(() => client.leave())
  const headers = { authorization: `Bearer ${key}`, accept: 'text/csv' }
  client.send(rawRequest(method, '/v1/usage', headers))
  return client
}

describe('an export of usage', () => {
  test(
    'whose client leaves in the middle of a read keeps nobody from reading',
    { timeout: 120_000 },
    async () => {
      const customer = await world.newCustomer()
      for (let round = 0; round < 5; round += 1) {
        const clients = await Promise.all(
          Array.from({ length: 8 }, () => exporting(customer, 'GET')),
        )
        await Promise.all(clients.map((client) => client.hears('HTTP/1.1 200')))
        for (const client of clients) client.leave()
      }
      const headers = { authorization: `Bearer ${customer.key}` }
      const read = async () => (await world.stack.fetch('/v1/usage', { headers })).status
      await expect.poll(read, { timeout: 60_000 }).toBe(200)
    },
  )

  test('of which only the headers are asked for has a place no longer than it is read', async () => {
    const customer = await world.newCustomer()
    // More than may wait to be read.
    const clients = await Promise.all(Array.from({ length: 40 }, () => exporting(customer, 'HEAD')))
    const heard = await Promise.all(
      clients.map(async (client) => {
        await client.hears('\r\n\r\n')
        return client.received.slice('HTTP/1.1 '.length, 'HTTP/1.1 '.length + 3)
      }),
    )
    expect(['200', '429']).toEqual(expect.arrayContaining([...new Set(heard)]))
    await until(async () => (await openRequests()) === 0)
  })
})

const MIB = 1024 * 1024

/** A client that announces an upload of maximum size, and sends nothing of it. */
async function uploading({ key }: Customer): Promise<RawClient> {
  const client = await RawClient.connect(world.stack.local.base_url)
  onTestFinished(() => client.leave())
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'multipart/form-data; boundary=of-the-test',
    'content-length': 26 * MIB,
  }
  client.send(rawRequest('POST', '/v1/audio/transcriptions', headers))
  return client
}

test('an upload whose client leaves while it waits for memory has no place any more', async () => {
  const customer = await world.newCustomer()
  const uploads = 3
  await Promise.all(Array.from({ length: uploads }, () => uploading(customer)))
  await until(async () => (await openRequests()) === uploads)
  const waiting = await uploading(customer)
  await until(async () => (await openRequests()) === uploads + 1)
  waiting.leave()
  // Sooner than the others are given up.
  await expect.poll(openRequests, { timeout: 5_000 }).toBe(uploads)
})
