import { setTimeout as delay } from 'node:timers/promises'
import type { ProviderCall, Script } from '../support/fault-provider.ts'

/** What scripted providers say when they say it well, and the pieces of it that faults are made of. */

/** The words of the provider under test, of the healthy one beside it, and their counts. */
export const FIRST = 'Hello from the first.'
export const OTHER = 'Hello from the other.'
export const FIRST_TOKENS = { prompt: 7, completion: 5 }
export const OTHER_TOKENS = { prompt: 9, completion: 6 }

/** Stands in every provider error; it must never come out at the other end. */
export const PROVIDER_WORDS = 'XPROVIDERWORDSX'

export const EVENT_STREAM = { 'content-type': 'text/event-stream' }
export const JSON_TYPE = { 'content-type': 'application/json' }

const IDENTITY = { id: 'gen-1', created: 1_763_600_000, model: `${PROVIDER_WORDS}/m` }

/** One event of a stream. */
export function event(data: object | string): string {
  return `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
}

/** One chunk of a stream, before it becomes an event. */
export function chunk(delta: object, finish: string | null = null, more: object = {}): object {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return { ...IDENTITY, object: 'chat.completion.chunk', choices, ...more }
}

export function content(text: string): string {
  return event(chunk({ content: text }))
}

export const ROLE = event(chunk({ role: 'assistant', content: '' }))
export const STOP = event(chunk({}, 'stop'))
export const DONE = event('[DONE]')

export function usageMember(tokens = FIRST_TOKENS): object {
  const usage = {
    prompt_tokens: tokens.prompt,
    completion_tokens: tokens.completion,
    total_tokens: tokens.prompt + tokens.completion,
  }
  return { usage }
}

/** The frame that ends a stream with counts. */
export function usageFrame(tokens = FIRST_TOKENS): string {
  return event({ ...IDENTITY, choices: [], ...usageMember(tokens) })
}

/** The first text in three deltas. */
export const TEXT = [content('Hello '), content('from '), content('the first.')].join('')

/** A whole answer, as an object to be changed. */
export function completion(message: object = { content: FIRST }, more: object = {}): object {
  const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }]
  return { ...IDENTITY, object: 'chat.completion', choices, ...usageMember(), ...more }
}

export function errorObject(code: string | number = 'server_error'): object {
  return { error: { message: PROVIDER_WORDS, type: 'server_error', code, param: null } }
}

/** A script that sends this body properly, by the way of asking. */
export function answering(stream: string | Uint8Array, whole: string | Uint8Array): Script {
  return (call) => {
    call.wire.head(200, call.stream ? EVENT_STREAM : JSON_TYPE)
    call.wire.send(call.stream ? stream : whole)
    call.wire.end()
  }
}

/** Another provider, in the best of health. */
export const healthy: Script = answering(
  ROLE + content(OTHER) + STOP + usageFrame(OTHER_TOKENS) + DONE,
  JSON.stringify(completion({ content: OTHER }, usageMember(OTHER_TOKENS))),
)

/** The provider under test on a good day. */
export const sound: Script = answering(
  ROLE + TEXT + STOP + usageFrame() + DONE,
  JSON.stringify(completion()),
)

/** A refusal or failure by status, with an error body. */
export function status(
  code: number | string,
  headers: Readonly<Record<string, string | number>> = {},
  body = JSON.stringify(errorObject()),
): Script {
  return ({ wire }) => {
    wire.head(code, { ...JSON_TYPE, ...headers })
    wire.send(body)
    wire.end()
  }
}

/** Longer than the router takes to pass on what it has read. */
const PAUSE_MS = 100

/** Some of the answer, its headers included, and when that has been passed on, whatever `misconduct` does. */
export function interrupted(misconduct: (call: ProviderCall) => void | Promise<void>): Script {
  return async (call) => {
    const { wire, stream } = call
    if (stream) {
      wire.head(200, EVENT_STREAM)
      wire.send(ROLE + content('Hello '))
    } else {
      const whole = JSON.stringify(completion())
      wire.head(200, { ...JSON_TYPE, 'content-length': whole.length })
      wire.send(whole.slice(0, 40))
    }
    await delay(PAUSE_MS)
    await misconduct(call)
  }
}

/** A stream that says `Hello `, and when that has been passed on, continues with this; or a whole answer. */
export function continuing(rest: string | Uint8Array, whole: string | Uint8Array = ''): Script {
  return async (call) => {
    if (!call.stream) return answering('', whole)(call)
    await interrupted(({ wire }) => {
      wire.send(rest)
      wire.end()
    })(call)
  }
}
