import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Webhook } from 'standardwebhooks'
import { z } from 'zod'
import { readLocalFile } from '../../src/host/stack/local-file.ts'
import { sound, status } from '../faults/answers.ts'
import { ask } from '../faults/ask.ts'
import { openWorld, type World } from '../faults/world.ts'
import { listen } from '../support/listen.ts'
import { temporaryDirectory, until } from '../support/stack.ts'

/** Webhooks of the real stack, as their receivers meet them. */

const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

interface Received {
  readonly path: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

const received: Received[] = []
/** How the receiver answers, by path; the paths are the names of the endpoints. */
const manners: Readonly<Record<string, (response: ServerResponse, turn: number) => void>> = {
  '/ops': (response) => response.writeHead(204).end(),
  '/moody': (response, turn) => response.writeHead(turn === 1 ? 500 : 200).end('never read'),
  '/elsewhere': (response) => response.writeHead(302, { location: '/secret' }).end(),
  '/hung': () => {},
  '/later': (response) => response.writeHead(awake ? 200 : 503).end(),
}

/** Whether the receiver `later` takes anything yet. */
let awake = false

let receiver: Server
const stateDir = temporaryDirectory()
let world: World

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request)
  const path = request.url ?? ''
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  )
  received.push({ path, headers, body })
  manners[path]?.(response, received.filter((one) => one.path === path).length)
}

beforeAll(async () => {
  receiver = createServer((request, response) => void take(request, response))
  const port = await listen(receiver)
  const endpoint = (name: string, events?: readonly string[]) => {
    const url = `http://127.0.0.1:${port}/${name}`
    return { url, secret_env: 'HOOK_SECRET', ...(events && { events }) }
  }
  world = await openWorld(
    [
      { model: 'sound', at: 'alpha', script: sound },
      { model: 'broken', at: 'alpha', script: status(503) },
      {
        model: 'fixed',
        at: 'alpha',
        script: sound,
        more: { pricing: { currency: 'eur', input_per_mtok: 0, output_per_mtok: 5_000 } },
      },
    ],
    {
      env: { HOOK_SECRET: SECRET },
      stateDir,
      service: {
        webhooks: {
          allowed_hosts: ['127.0.0.1'],
          balance_below_eur: 9.999999,
          endpoints: {
            ops: endpoint('ops'),
            moody: endpoint('moody', ['route.resting']),
            elsewhere: endpoint('elsewhere', ['route.resting']),
            hung: endpoint('hung', ['route.resting']),
            later: endpoint('later', ['key.limit_near', 'key.limit_reached']),
          },
        },
      },
    },
  )
}, 120_000)
afterAll(async () => {
  await world.close()
  receiver.closeAllConnections()
  receiver.close()
})

const run = () => world.admin.call('POST', '/admin/webhooks/run')

const eventSchema = z.object({
  type: z.string(),
  timestamp: z.iso.datetime(),
  data: z.record(z.string(), z.unknown()),
})

/** What came to a path, each taken as receivers take it: by its signature, or not at all. */
function messages(path: string, type: string) {
  return received
    .filter((one) => one.path === path)
    .map(({ body, headers }) => {
      return { body, headers, event: eventSchema.parse(new Webhook(SECRET).verify(body, headers)) }
    })
    .filter(({ event }) => event.type === type)
}

const deliveriesSchema = z.object({
  data: z.array(
    z.looseObject({
      id: z.string(),
      type: z.string(),
      endpoint: z.string(),
      state: z.string(),
      attempts: z.int(),
      last_result: z.string().nullable(),
    }),
  ),
})

async function deliveries(type: string) {
  const page = deliveriesSchema.parse(await world.admin.call('GET', '/admin/webhooks/deliveries'))
  return page.data.filter((one) => one.type === type)
}

describe('webhooks', () => {
  test('tell of a low balance once, signed, with ids and amounts and no names', async () => {
    const customer = await world.newCustomer({ name: 'XCUSTOMERNAMEX' })
    await ask(world, customer, { model: 'sound', stream: false })
    await ask(world, customer, { model: 'sound', stream: false })
    await until(async () => {
      await run()
      return messages('/ops', 'balance.low').length > 0
    })
    const [message, ...more] = messages('/ops', 'balance.low')
    expect(more).toEqual([])
    expect(message?.event.data).toEqual({
      customer_id: customer.id,
      balance_eur: expect.stringMatching(/^9\.9999/),
      threshold_eur: '9.999999',
    })
    expect(message?.body).not.toContain('XCUSTOMERNAMEX')
    expect(await deliveries('balance.low')).toEqual([
      expect.objectContaining({ endpoint: 'ops', state: 'delivered', last_result: '204' }),
    ])
  })

  test('tell that the limit of a key left no room, once', async () => {
    const customer = await world.newCustomer()
    const path = `/admin/customers/${customer.id}/keys`
    const prefix = customer.key.split('_').slice(0, 3).join('_')
    await world.admin.call('PATCH', `${path}/${prefix}`, { limit_eur: '0.000001' })
    for (let turn = 0; turn < 3; turn++) {
      const { words } = await ask(world, customer, { model: 'sound', stream: false })
      expect(words).toBe('402 insufficient_quota')
    }
    await until(async () => {
      await run()
      return messages('/ops', 'key.limit_reached').length > 0
    })
    const told = messages('/ops', 'key.limit_reached')
    expect(told.map(({ event }) => event.data)).toEqual([
      { customer_id: customer.id, key_prefix: prefix, spent_eur: '0', limit_eur: '0.000001' },
    ])
  })

  test(
    'tell that a key has spent four fifths of its limit, and all of it, also after the worker was killed',
    { timeout: 90_000 },
    async () => {
      const customer = await world.newCustomer()
      const path = `/admin/customers/${customer.id}/keys`
      const prefix = customer.key.split('_').slice(0, 3).join('_')
      await world.admin.call('PATCH', `${path}/${prefix}`, { limit_eur: '0.10' })
      for (let turn = 1; turn <= 11; turn++) {
        // The bill is exactly what was reserved: two tokens.
        const more = { max_tokens: 2 }
        const { words } = await ask(world, customer, { model: 'fixed', stream: false, more })
        expect(words).toMatch(turn <= 10 ? /^200 / : /^402 insufficient_quota/)
      }
      // The receiver refuses, and the worker that knows of it dies; the pending delivery survives.
      await until(async () => {
        await run()
        const later = await deliveries('key.limit_near')
        return later.some(
          ({ endpoint, last_result: result }) => endpoint === 'later' && result === '503',
        )
      })
      const { worker } = world.stack.local.pids
      process.kill(worker, 'SIGKILL')
      awake = true
      await until(async () => {
        await run().catch(() => undefined)
        const later = await deliveries('key.limit_near').catch(() => [])
        return later.some(({ endpoint, state }) => endpoint === 'later' && state === 'delivered')
      })
      const near = messages('/later', 'key.limit_near')
      expect(near.length).toBeGreaterThan(1)
      expect(new Set(near.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
      expect(new Set(near.map(({ body }) => body)).size).toBe(1)
      const ofKey = { customer_id: customer.id, key_prefix: prefix, limit_eur: '0.1' }
      expect(near[0]?.event.data).toEqual({ ...ofKey, spent_eur: '0.08' })
      const reached = () =>
        messages('/later', 'key.limit_reached')
          .map(({ event }) => event.data)
          .filter((data) => data['key_prefix'] === prefix)
      await until(async () => {
        await run()
        return reached().length > 0
      })
      expect(reached()).toContainEqual({ ...ofKey, spent_eur: '0.1' })
    },
  )

  test('tell that nothing can be signed while the daemon does not answer', async () => {
    const { enclave } = readLocalFile(stateDir).pids
    process.kill(enclave, 'SIGSTOP')
    try {
      await until(async () => {
        await run().catch(() => undefined)
        return messages('/ops', 'signing.failing').length > 0
      })
    } finally {
      process.kill(enclave, 'SIGCONT')
    }
    expect(messages('/ops', 'signing.failing').map(({ event }) => event.data)).toEqual([
      { fault: 'enclave_unreachable' },
    ])
    await until(async () => (await world.stack.fetch('/healthz')).status === 200)
  })

  test('tell that a route rests; who fails, hangs or leads elsewhere is tried again and kept apart', async () => {
    const customer = await world.newCustomer()
    for (let turn = 0; turn < 5; turn++)
      await ask(world, customer, { model: 'broken', stream: false })
    await until(async () => {
      await run()
      const results = (await deliveries('route.resting')).map((one) => one.last_result)
      return results.includes('timeout') && messages('/moody', 'route.resting').length === 2
    })
    expect(messages('/ops', 'route.resting').map(({ event }) => event.data)).toEqual([
      { route: 'alpha/broken' },
    ])
    const [first, second] = messages('/moody', 'route.resting')
    expect(second?.body).toBe(first?.body)
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    const results = new Map(
      (await deliveries('route.resting')).map((one) => [
        one.endpoint,
        [one.state, one.last_result],
      ]),
    )
    expect(results.get('ops')).toEqual(['delivered', '204'])
    expect(results.get('moody')).toEqual(['delivered', '200'])
    expect(results.get('elsewhere')).toEqual(['pending', 'redirected'])
    expect(results.get('hung')).toEqual(['pending', 'timeout'])
    expect(received.some(({ path }) => path === '/secret')).toBe(false)
  })

  test('never show their secrets', async () => {
    const shown = await Promise.all([
      world.admin.call('GET', '/admin/webhooks/deliveries'),
      world.stack.fetch('/openapi.json').then((answer) => answer.text()),
      world.admin.call('GET', '/admin/metrics'),
    ])
    expect(JSON.stringify(shown)).not.toContain(SECRET.slice('whsec_'.length))
    const refused = await world.stack.fetch('/admin/webhooks/deliveries')
    expect(refused.status).toBe(401)
  })
})
