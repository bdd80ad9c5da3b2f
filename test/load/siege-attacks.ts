import { setTimeout as delay } from 'node:timers/promises'
import type { Customer } from '../faults/world.ts'
import { gatherCrowd } from '../support/crowd.ts'
import { PROVIDER_WORDS } from '../faults/answers.ts'
import type { Script } from '../support/fault-provider.ts'
import { rawRequest, RawClient } from '../support/raw-client.ts'
import type { Stack } from '../support/stack.ts'

/** What those do who mean harm. Each goes on until it is told to stop, and minds no answer. */

const CHAT = '/v1/chat/completions'
const MESSAGES = [{ role: 'user', content: 'Hello.' }]
const MIB = 1024 * 1024

/** Repeats a deed, so many times side by side. */
async function flood(side: number, ends: AbortSignal, deed: () => Promise<unknown>): Promise<void> {
  const one = async () => {
    while (!ends.aborted) {
      await deed().catch(() => {})
      await delay(0)
    }
  }
  await Promise.all(Array.from({ length: side }, one))
}

function ask(stack: Stack, { key }: Customer, body: object, signal: AbortSignal): Promise<unknown> {
  const init = {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'x-service-timeout-seconds': '5' },
  }
  const sent = stack.fetch(CHAT, { ...init, body: JSON.stringify(body), signal })
  return sent.then((answer) => answer.text())
}

type Attack = (stack: Stack, customer: Customer, ends: AbortSignal) => Promise<void>

/** Of five customers, one each. */
export const CUSTOMER_ATTACKS: readonly Attack[] = [
  function chats(stack, customer, ends) {
    return flood(16, ends, () => ask(stack, customer, { model: 'sound', messages: MESSAGES }, ends))
  },
  function reads(stack, { key }, ends) {
    const headers = { authorization: `Bearer ${key}` }
    return flood(8, ends, () =>
      stack
        .fetch('/v1/usage?limit=1000', { headers, signal: ends })
        .then((answer) => answer.text()),
    )
  },
  function leaves(stack, customer, ends) {
    const body = { model: 'sound', stream: true, messages: MESSAGES }
    return flood(8, ends, () => ask(stack, customer, body, AbortSignal.timeout(20)))
  },
  function largeBodies(stack, customer, ends) {
    const content = 'x'.repeat(4 * MIB)
    const body = { model: 'sound', messages: [{ role: 'user', content }] }
    return flood(2, ends, () => ask(stack, customer, body, ends))
  },
  function slowBodies(stack, { key }, ends) {
    return trickle(stack, 40, { authorization: `Bearer ${key}` }, ends)
  },
]

/** Of people without a key. */
export async function strangers(stack: Stack, ends: AbortSignal): Promise<void> {
  const from = Array.from({ length: 20 }, (_, index) => `127.0.7.${index + 1}`)
  const port = Number(new URL(stack.local.base_url).port)
  const nonce = () => crypto.getRandomValues(Buffer.alloc(32)).toString('hex')
  const crowd = await gatherCrowd({ port, count: 2_000, from })
  await Promise.all([
    trickle(stack, 40, {}, ends),
    flood(4, ends, () =>
      stack
        .fetch(`/attestation?nonce=${nonce()}`, { signal: ends })
        .then((answer) => answer.text())
        .then(() => delay(50)),
    ),
  ])
  crowd.leave()
}

/** Requests whose bodies do not come, opened again as they are closed. */
async function trickle(
  stack: Stack,
  side: number,
  headers: Readonly<Record<string, string>>,
  ends: AbortSignal,
): Promise<void> {
  const head = rawRequest('POST', CHAT, { ...headers, 'content-length': 1_000_000 }, '{')
  await flood(side, ends, async () => {
    const client = await RawClient.connect(stack.local.base_url)
    client.send(head)
    while (!client.closed && !ends.aborted && client.received === '') await delay(100)
    client.leave()
  })
}

/** Asks a provider that means harm for an answer, again and again. */
export function askHostileProvider(
  stack: Stack,
  customer: Customer,
  ends: AbortSignal,
): Promise<void> {
  return flood(4, ends, () => ask(stack, customer, { model: 'hostile', messages: MESSAGES }, ends))
}

const MISDEEDS: readonly Script[] = [
  ({ wire }) => wire.head('099 X', { 'content-length': 0 }),
  ({ wire }) => wire.raw('HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  ({ wire }) => wire.raw(`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(5_000)}`),
  async ({ wire }) => {
    wire.head(200, { 'content-type': 'application/json' })
    for (let sent = 0; sent < 20 && !wire.over; sent++) await wire.sendSlowly(' '.repeat(MIB))
    wire.end()
  },
  ({ wire }) => {
    wire.head(200, { 'content-type': 'application/json' })
    wire.send(`{"choices": [${PROVIDER_WORDS}`)
    wire.reset()
  },
]

/** A provider that finds another way to misbehave each time. */
export const hostile: Script = (call) => MISDEEDS[call.number % MISDEEDS.length]?.(call)
