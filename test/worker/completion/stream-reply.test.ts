import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { chatFormat } from '../../../src/worker/chat/encoder.ts'
import type { AnswerFormat } from '../../../src/worker/completion/format.ts'
import { LinkUnavailable } from '../../../src/worker/link/link.ts'
import { API_FORMATS } from '../../support/api-formats.ts'
import { ownTimers } from '../../support/own-timers.ts'
import { BILLED, NOT_BILLED, streamed, textOf, TIMERS, WHOLE } from './streamed-request.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: [...TIMERS] }))
afterEach(() => void vi.useRealTimers())

/** A format that fails where a stream is already delivered. */
const BROKEN_FORMAT: AnswerFormat = {
  ...chatFormat(false),
  lastEvents: (head) => ({
    ...chatFormat(false).lastEvents(head),
    close: () => {
      throw new Error('an unexpected error')
    },
  }),
}

describe.each([
  ['that the worker reads', false],
  ['that the daemon writes', true],
] as const)('a stream %s', (_, written) => {
  test('is delivered and billed', async () => {
    const timers = ownTimers()
    const { answer, ledger } = await streamed({ written })
    expect(await textOf(answer)).toMatch(/"content":"one".*"finish_reason":"stop"/s)
    expect(await ledger()).toEqual(BILLED)
    expect(timers.left()).toBe(0)
  })

  test('ends with an error event after an unexpected error, and what was produced is billed', async () => {
    const { answer, ledger } = await streamed({ written, format: BROKEN_FORMAT })
    expect(await textOf(answer)).toMatch(
      /"content":"one".*"error":\{"message":"The router failed.*"code":"internal"/s,
    )
    expect(await ledger()).toEqual(BILLED)
  })

  test.each([
    ['a status', 30_000, /^refused: routes_unavailable No route began to answer in time\.$/],
    ['an event', 100, /^(: keep-alive\n\n)*data: \{"error":[^\n]*"code":"routes_unavailable"/],
  ])(
    'whose daemon answers after the time for opening is told so by %s, without output, and not billed',
    async (_how, stream_headers_after_ms, expected) => {
      const { promise: daemonAlive, resolve } = Promise.withResolvers<void>()
      const timeouts = { stream_open_ms: 1_000, stream_headers_after_ms }
      const { answer, ledger, opened } = await streamed({ written, timeouts, daemonAlive })
      const told = textOf(answer)
      await opened
      await vi.advanceTimersByTimeAsync(1_000)
      resolve()
      expect(await told).toMatch(expected)
      expect(await ledger()).toEqual(NOT_BILLED)
    },
  )

  test.each([
    ['before its provider has answered', true],
    ['after the first event', false],
  ])(
    'whose daemon is found dead %s lets its provider go at once, and costs nothing',
    async (_when, neverAnswers) => {
      const { promise: daemonAlive, reject } = Promise.withResolvers<never>()
      daemonAlive.catch(() => {})
      const parts = await streamed({ written, daemonAlive, neverAnswers })
      const told = textOf(parts.answer)
      const signal = await parts.asked
      if (!neverAnswers) await parts.opened
      expect(signal.aborted).toBe(false)
      reject(new LinkUnavailable('the enclave daemon cannot be reached'))
      await Promise.allSettled([daemonAlive])
      expect(signal.aborted).toBe(true)
      expect(await told).toMatch(/^refused: service_unavailable /)
      expect(await parts.ledger()).toEqual(NOT_BILLED)
    },
  )

  test('that has failed leaves no timer behind, although its daemon is found dead later', async () => {
    const timers = ownTimers()
    const dead = new LinkUnavailable('the enclave daemon cannot be reached')
    const daemonAlive = new Promise((_resolve, reject) => setTimeout(() => reject(dead), 5_000))
    const { answer } = await streamed({ written, daemonAlive, attempts: [] })
    expect(await textOf(answer)).toMatch(/^refused: routes_unavailable /)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(timers.left()).toBe(0)
  })
})

describe('the text of a response, all of which its last events repeat,', () => {
  const MIB = 1024 * 1024
  const format = API_FORMATS['responses']?.format ?? chatFormat(false)
  const piece = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${'x'.repeat(MIB)}"}}]}\n\n`

  /** Its last event and the completion tokens that are billed, for an answer of so many MiB. */
  async function longAnswer(mib: number, memory: number) {
    let left = memory
    const takeMemory = (bytes: number) => {
      if (bytes > left) throw new Error('no memory is left')
      left -= bytes
    }
    const reads = [...Array.from({ length: mib }, () => piece), WHOLE]
    const { answer, ledger } = await streamed({ written: false, format, reads, takeMemory })
    const text = await textOf(answer)
    const { rows, reservations } = await ledger()
    const last = text.slice(text.lastIndexOf('event: '))
    const [failure] = /"code":"[a-z_]+"/.exec(last.slice(-2_000)) ?? []
    return { last: last.slice(0, last.indexOf('\n')), failure, rows: rows?.length, reservations }
  }

  test('is whole where there is memory for it', async () => {
    const seen = await longAnswer(2, 16 * MIB)
    expect(seen).toMatchObject({ last: 'event: response.completed', rows: 1, reservations: [] })
  })

  test.each([
    ['there is no memory for', 4, 2 * MIB, 'server_is_overloaded'],
    ['is longer than one answer may be', 9, 256 * MIB, 'invalid_prompt'],
  ])(
    'that %s ends the stream as an error, and what was produced is billed',
    async (_, mib, memory, code) => {
      expect(await longAnswer(mib, memory)).toEqual({
        last: 'event: response.failed',
        failure: `"code":"${code}"`,
        rows: 1,
        reservations: [],
      })
    },
  )
})
