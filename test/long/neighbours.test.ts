import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { answering, completion, sound } from '../faults/answers.ts'
import { openWorld, TIMEOUTS, type Customer, type World } from '../faults/world.ts'
import type { Script } from '../support/fault-provider.ts'
import { errorOf } from '../support/answers.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'

/** What one customer does must cost another nothing but a moment. */

const MIB = 1024 * 1024
const AT_ONCE = 16

/** An answer of twelve mebibytes with almost as many values as are parsed at all. */
const LARGE = JSON.stringify({
  ...completion({ content: 'x'.repeat(11 * MIB) }),
  ignored: Array.from({ length: 240_000 }, () => ({})),
})

let world: World

/** Answers while the router does not run, for longer than a provider has for its first byte. */
const answersMeanwhile: Script = async (call) => {
  const { worker } = world.stack.local.pids
  process.kill(worker, 'SIGSTOP')
  try {
    await sound(call)
    await delay(2 * TIMEOUTS.headers_ms)
  } finally {
    process.kill(worker, 'SIGCONT')
  }
}

beforeAll(async () => {
  const large = answering('', LARGE)
  const timeouts = { sync_attempt_ms: undefined, idle_ms: 60_000 }
  world = await openWorld(
    [
      { model: 'large', at: 'alpha', script: large },
      { model: 'sound', at: 'alpha', script: sound },
      { model: 'meanwhile', at: 'alpha', script: answersMeanwhile },
    ],
    { timeouts },
  )
})
afterAll(() => world.close())

async function chat({ key }: Customer, model: string, more: object = {}): Promise<number> {
  const answer = await world.stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello!' }], ...more }),
  })
  await answer.arrayBuffer()
  return answer.status
}

test('sixteen concurrent answers of twelve mebibytes cause no refusal for another customer', async () => {
  const [greedy, other] = await Promise.all([world.newCustomer(), world.newCustomer()])
  const over = new AbortController()
  const large = Promise.all(Array.from({ length: AT_ONCE }, () => chat(greedy, 'large'))).finally(
    () => over.abort(),
  )
  const others: number[] = []
  do {
    others.push(await chat(other, 'sound'))
  } while (!over.signal.aborted)
  expect(new Set(others)).toEqual(new Set([200]))
  const statuses = await large
  expect(statuses).toContain(200)
  // What does not fit into the memory share of one customer is refused with that reason.
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([])
  expect(await chat(greedy, 'large')).toBe(200)
}, 120_000)

test('a provider that answers while the router does not run is not the one that is late', async () => {
  const customer = await world.newCustomer()
  for (const stream of [true, false]) {
    expect(await chat(customer, 'meanwhile', { stream })).toBe(200)
  }
})

const UPLOADS = 13
const FORM_TYPE = 'multipart/form-data; boundary=neighbour'

/** A form whose file is so many bytes of no sound. */
function form(bytes: number): Buffer {
  const part = (name: string) => `--neighbour\r\ncontent-disposition: form-data; name="${name}"`
  const head = `${part('model')}\r\n\r\nwhisper\r\n${part('file')}; filename="a.mp3"\r\n\r\n`
  const end = '\r\n--neighbour--\r\n'
  return Buffer.concat([Buffer.from(head), Buffer.alloc(bytes, 0xff), Buffer.from(end)])
}

test('thirteen very slow uploads keep no other client from uploading', async () => {
  const [slow, other] = await Promise.all([world.newCustomer(), world.newCustomer()])
  const path = '/v1/audio/transcriptions'
  const headers = (key: string) => ({
    authorization: `Bearer ${key}`,
    'content-type': FORM_TYPE,
  })
  const head = { ...headers(slow.key), 'content-length': 25 * MIB }
  const uploads = await Promise.all(
    Array.from({ length: UPLOADS }, async () => {
      const client = await RawClient.connect(world.stack.local.base_url)
      client.send(rawRequest('POST', path, head, '--neighbour\r\n'))
      return client
    }),
  )
  const trickle = setInterval(() => {
    for (const upload of uploads) upload.send('x')
  }, 1_000)
  try {
    // Beside those of the first customer there is no room for this one unless each has but a share.
    const answer = await world.stack.fetch(path, {
      method: 'POST',
      headers: headers(other.key),
      body: new Uint8Array(form(20 * MIB)),
    })
    expect([answer.status, (await errorOf(answer)).code]).toEqual([400, 'unsupported_file_type'])
    expect(uploads.map(({ closed, received }) => [closed, received])).toEqual(
      uploads.map(() => [false, '']),
    )
  } finally {
    clearInterval(trickle)
    for (const upload of uploads) upload.leave()
  }
}, 120_000)
