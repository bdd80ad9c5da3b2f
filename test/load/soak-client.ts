import { setTimeout as delay } from 'node:timers/promises'
import type { Customer } from '../faults/world.ts'
import { wav } from '../support/audio-samples.ts'
import type { Stack } from '../support/stack.ts'
import type { Outcome } from './ledger-check.ts'
import { SOAK_SCRIPTS } from './soak-kinds.ts'

/** One client of a soak: it picks what to do by chance, and knows what has come of it. */

const MODELS = Object.keys(SOAK_SCRIPTS)
const MESSAGES = [{ role: 'user', content: 'Hello, and tell me more.' }]
const SOUND = wav(1).bytes
const LEAVES_AFTER_MS = 150

/** What was requested, and what the client knows of it where the ledger may have a row. */
export interface Done {
  readonly what: string
  readonly outcome?: Outcome
}

type Deed = (stack: Stack, customer: Customer, chance: () => number) => Promise<Done>

const auth = ({ key }: Customer) => ({ authorization: `Bearer ${key}` })

const chat: Deed = async (stack, customer, chance) => {
  const model = MODELS[Math.floor(chance() * MODELS.length)] ?? 'sound'
  const stream = chance() < 0.6
  const answer = await stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { ...auth(customer), ...(stream ? {} : { 'x-service-timeout-seconds': '5' }) },
    body: JSON.stringify({ model, stream, messages: MESSAGES, max_tokens: 100 }),
  })
  const text = await answer.text().catch(() => '')
  const way = stream ? 'stream' : 'whole'
  return { what: `${model}, ${way}: ${answer.status}`, outcome: outcomeOf(customer, answer, text) }
}

const leave: Deed = async (stack, customer) => {
  const leaving = new AbortController()
  const call = stack.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: auth(customer),
    body: JSON.stringify({ model: 'slow', stream: true, messages: MESSAGES, max_tokens: 100 }),
    signal: leaving.signal,
  })
  void call.then((answer) => answer.text()).catch(() => {})
  await delay(LEAVES_AFTER_MS)
  leaving.abort()
  return { what: 'a client that leaves' }
}

const transcribe: Deed = async (stack, customer) => {
  const form = new FormData()
  form.set('model', 'whisper')
  form.set('file', new File([SOUND], 'a.wav', { type: 'audio/wav' }))
  const init = { method: 'POST', headers: auth(customer), body: form }
  const answer = await stack.fetch('/v1/audio/transcriptions', init)
  const text = await answer.text()
  return { what: `transcription: ${answer.status}`, outcome: outcomeOf(customer, answer, text) }
}

function reading(path: string): Deed {
  return async (stack, customer) => {
    const answer = await stack.fetch(path, { headers: auth(customer) })
    await answer.text()
    return { what: `${path}: ${answer.status}` }
  }
}

const broken: Deed = async (stack, customer) => {
  const init = { method: 'POST', headers: auth(customer), body: '{"model": "sound", "mess' }
  const answer = await stack.fetch('/v1/chat/completions', init)
  return {
    what: `no JSON: ${answer.status}`,
    outcome: outcomeOf(customer, answer, await answer.text()),
  }
}

const DEEDS: readonly (readonly [share: number, deed: Deed])[] = [
  [0.8, chat],
  [0.06, leave],
  [0.04, transcribe],
  [0.04, reading('/v1/usage?limit=5')],
  [0.03, reading('/v1/models')],
  [0.01, reading('/attestation')],
  [0.02, broken],
]

/** Makes one request. A router that cannot be reached at all is reported as such. */
export async function act(stack: Stack, customer: Customer, chance: () => number): Promise<Done> {
  let left = chance()
  const deed = DEEDS.find(([share]) => (left -= share) < 0)?.[1] ?? chat
  try {
    return await deed(stack, customer, chance)
  } catch (error) {
    return { what: `no answer: ${error instanceof Error ? error.name : 'unknown'}` }
  }
}

function outcomeOf(customer: Customer, answer: Response, text: string): Outcome {
  const requestId = answer.headers.get('x-request-id') ?? ''
  if (answer.status !== 200) return { customer, requestId, kind: 'failed' }
  const receiptId = /"receipt_id":\s*"([^"]+)"/.exec(text)?.[1]
  const streams = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
  const complete = streams ? text.endsWith('data: [DONE]\n\n') : text.endsWith('}')
  return { customer, requestId, receiptId, kind: complete ? 'complete' : 'open' }
}
