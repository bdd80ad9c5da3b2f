import { describe, expect, it, vi } from 'vitest'
import type { SignResponse } from '../../../src/protocol/link.ts'
import { HttpLink } from '../../../src/worker/link/http-link.ts'
import { LINK_FAILURES, LinkUnavailable, type LinkFailure } from '../../../src/worker/link/link.ts'
import { WHOLE_ANSWER_RECORD } from '../../support/whole-answer-spec.ts'
import { ownTimers } from '../../support/own-timers.ts'

const STATE = {
  thread: '5f0c3a52-7a3e-4d55-8d1b-0f4f1a3b9a11',
  generation: 1,
  kid: 'k',
  jwk: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y', kid: 'k', alg: 'ES256', use: 'sig' },
  envelope_sha256: null,
}

/** A link whose daemon gives one answer after another, and a clock to turn. */
function linkTo(...answers: (() => Response | Promise<Response>)[]) {
  const clock = { now: 1_000 }
  const asked: string[] = []
  const binding = {
    fetch: async (url: string) => {
      asked.push(new URL(url).pathname)
      const answer = answers.shift()
      if (!answer) throw new TypeError('connection refused')
      return answer()
    },
  }
  const failures: string[] = []
  const kept: Promise<unknown>[] = []
  const host = { now: () => clock.now, keepAlive: (work: Promise<unknown>) => void kept.push(work) }
  const link = new HttpLink(binding, host, (failure) => failures.push(failure))
  return { link, clock, asked, failures, kept }
}

const state = () => Response.json(STATE)

describe('the link', () => {
  it('takes no state that is older than a quarter of a second', async () => {
    const { link, clock, asked } = linkTo(state, state)
    await link.state()
    clock.now += 124
    await link.state()
    expect(asked).toHaveLength(1)
    clock.now += 126
    await link.state()
    expect(asked).toHaveLength(2)
  })

  it('asks for the next state before the known one is too old, and lets no caller wait for it', async () => {
    const next = Promise.withResolvers<Response>()
    const { link, clock, asked, kept } = linkTo(state, () => next.promise)
    await link.state()
    clock.now += 125
    const crowd = await Promise.all(Array.from({ length: 50 }, () => link.state()))
    expect(new Set(crowd.map(({ generation }) => generation))).toEqual(new Set([1]))
    expect(asked).toHaveLength(2)
    next.resolve(Response.json({ ...STATE, generation: 2 }))
    await Promise.all(kept)
    await expect(link.state()).resolves.toMatchObject({ generation: 2 })
    clock.now += 124
    await expect(link.state()).resolves.toMatchObject({ generation: 2 })
    expect(asked).toHaveLength(2)
  })

  it('refuses once the next state could not be fetched, also before the known one is too old', async () => {
    const gone = () => Promise.reject(new TypeError('gone'))
    const { link, clock, asked, kept } = linkTo(state, gone, state)
    await link.state()
    clock.now += 125
    await expect(link.state()).resolves.toEqual(STATE)
    await expect(Promise.all(kept)).resolves.toHaveLength(2)
    await expect(link.state()).rejects.toThrow('the enclave daemon cannot be reached')
    clock.now += 249
    await expect(link.state()).rejects.toThrow('the enclave daemon cannot be reached')
    expect(asked).toHaveLength(2)
    clock.now += 1
    await expect(link.state()).resolves.toEqual(STATE)
  })

  it('asks once for many concurrent callers, and once more when that has failed', async () => {
    const slow = () => new Promise<Response>((resolve) => setTimeout(() => resolve(state()), 30))
    const { link, clock, asked } = linkTo(slow, () => Promise.reject(new TypeError('gone')), state)
    const crowd = () => Promise.allSettled(Array.from({ length: 50 }, () => link.state()))
    expect((await crowd()).map(({ status }) => status)).toEqual(Array(50).fill('fulfilled'))
    expect(asked).toHaveLength(1)
    clock.now += 250
    expect((await crowd()).map(({ status }) => status)).toEqual(Array(50).fill('rejected'))
    expect(asked).toHaveLength(2)
    clock.now += 250
    expect((await crowd()).map(({ status }) => status)).toEqual(Array(50).fill('fulfilled'))
    expect(asked).toHaveLength(3)
  })

  it('asks again for who came after the question, and once for all who wait for the next one', async () => {
    const slow = () => new Promise<Response>((resolve) => setTimeout(() => resolve(state()), 20))
    const { link, clock, asked } = linkTo(state, slow, slow)
    await link.state()
    clock.now += 1
    const early = Array.from({ length: 10 }, () => link.stateReadAfter(clock.now))
    await vi.waitFor(() => expect(asked).toHaveLength(2))
    clock.now += 1
    const late = Array.from({ length: 10 }, () => link.stateReadAfter(clock.now))
    await expect(Promise.all([...early, ...late])).resolves.toHaveLength(20)
    expect(asked).toHaveLength(3)
  })

  it('takes no state from before that time for an answer, but any refusal after it', async () => {
    const { link, clock, asked } = linkTo(state)
    await link.state()
    await expect(link.stateReadAfter(clock.now)).resolves.toEqual(STATE)
    clock.now += 1
    await expect(link.stateReadAfter(clock.now)).rejects.toThrow(
      'the enclave daemon cannot be reached',
    )
    await expect(link.stateReadAfter(clock.now)).rejects.toBeInstanceOf(LinkUnavailable)
    expect(asked).toHaveLength(2)
  })

  it('takes what the daemon says of an answer that it has written, and counts a form of it that is unknown', async () => {
    const saying = (whole: unknown) => () => Object.assign(new Response('{}'), { whole })
    const { link, failures } = linkTo(saying(WHOLE_ANSWER_RECORD), () => new Response('{}'))
    await expect(link.egress('a', '/b', {})).resolves.toMatchObject({ whole: WHOLE_ANSWER_RECORD })
    await expect(link.egress('a', '/b', {})).resolves.toMatchObject({ whole: undefined })
    expect(failures).toEqual([])
    for (const malformed of [null, {}, { ...WHOLE_ANSWER_RECORD, request_sha256: 'a1' }]) {
      const other = linkTo(saying(malformed))
      await expect(other.link.egress('a', '/b', {})).rejects.toMatchObject({
        name: 'LinkUnavailable',
        message: 'the enclave daemon answered in an unknown form',
      })
      expect(other.failures).toEqual(['malformed'])
    }
  })

  it('asks for the record of a stream a second time, because the first answer may be lost', async () => {
    const record = {
      ending: { kind: 'complete' },
      finish_reason: 'stop',
      counts: { prompt: 7, completion: 5, uncounted_text_bytes: 0 },
      provider_response_id: null,
      provider_sha256: 'a'.repeat(64),
      client_sha256: 'b'.repeat(64),
      tail: { events: 3, blocks: 0, open: null, output: [] },
    }
    const lost = () => Promise.reject(new TypeError('connection reset'))
    const healed = linkTo(lost, () => Response.json(record))
    await expect(healed.link.endStream('one')).resolves.toEqual(record)
    expect(healed.asked).toEqual(['/v1/streams/one', '/v1/streams/one'])
    const gone = linkTo(lost)
    await expect(gone.link.endStream('one')).rejects.toThrow('the enclave daemon cannot be reached')
    expect(gone.asked).toHaveLength(2)
  })

  describe('after a call that broke off', () => {
    const other = { ...STATE, thread: '0d4a6b52-1111-4d55-8d1b-0f4f1a3b9a11' }

    it('says nothing where the thread that carried it still answers', async () => {
      const { link, clock } = linkTo(state, state)
      await link.state()
      const watch = link.watchThread()
      clock.now += 1
      expect(watch.thread).toBe(STATE.thread)
      expect(await watch.loss()).toBeUndefined()
    })

    it('fails where that thread does not answer, or another one does', async () => {
      const { link, clock, failures } = linkTo(state, () => Response.json(other))
      await link.state()
      const watch = link.watchThread()
      clock.now += 1
      const failed = (failure: LinkFailure) =>
        new LinkUnavailable(LINK_FAILURES[failure], { failure })
      expect(await watch.loss()).toEqual(failed('broken_off'))
      clock.now += 1
      expect(await watch.loss()).toEqual(failed('unreachable'))
      expect(failures).toEqual(['broken_off', 'unreachable'])
    })

    it('takes the thread that answers for the one that carried it where none was known', async () => {
      const { link } = linkTo(state)
      const watch = link.watchThread()
      expect(watch.thread).toBeUndefined()
      expect(await watch.loss()).toBeUndefined()
    })
  })

  it('keeps the request alive that asks for the state, until the answer that others wait for is there', async () => {
    const answer = Promise.withResolvers<Response>()
    const { link, clock, kept } = linkTo(() => answer.promise)
    // As a stream that is refused before its answer comes.
    link.stateReadAfter(clock.now).catch(() => {})
    expect(kept).toHaveLength(1)
    let isOver = false
    const work = kept[0]?.then(() => (isOver = true))
    const waiting = link.stateReadAfter(clock.now)
    await new Promise((done) => setImmediate(done))
    expect(isOver).toBe(false)
    answer.resolve(state())
    await expect(waiting).resolves.toEqual(STATE)
    await work
    expect(isOver).toBe(true)
    expect(kept).toHaveLength(1)
  })

  it('asks again when the caller that asked never returns', async () => {
    const { link, clock } = linkTo(() => new Promise<Response>(() => {}), state)
    void link.state()
    clock.now += 3_000
    await expect(link.state()).resolves.toEqual(STATE)
  })

  it('keeps a refusal as long as an answer, and heals after that', async () => {
    const { link, clock, asked } = linkTo(() => Promise.reject(new TypeError('frozen')), state)
    await expect(link.state()).rejects.toThrow('the enclave daemon cannot be reached')
    await expect(link.state()).rejects.toBeInstanceOf(LinkUnavailable)
    expect(asked).toHaveLength(1)
    clock.now += 250
    await expect(link.state()).resolves.toEqual(STATE)
  })

  it('asks again when the clock has been set back', async () => {
    const { link, clock, asked } = linkTo(state, state)
    await link.state()
    clock.now -= 10_000
    await link.state()
    expect(asked).toHaveLength(2)
  })

  it.each([
    ['an error status', () => new Response('{}', { status: 500 }), 'the enclave daemon refused'],
    ['no JSON', () => new Response('<html>'), 'the enclave daemon answered in an unknown form'],
    [
      'other members',
      () => Response.json({ kid: 7 }),
      'the enclave daemon answered in an unknown form',
    ],
  ])('refuses %s in place of the state', async (_what, answer, message) => {
    const { link } = linkTo(answer)
    const failure: unknown = await link.state().catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(LinkUnavailable)
    expect(String(failure)).toContain(message)
  })

  it('reports every failed call and its way of failing, a kept refusal once', async () => {
    const broken = () =>
      new Response(new ReadableStream({ pull: (c) => c.error(new Error('cut')) }))
    const { link, failures } = linkTo(
      () => new Response('{}', { status: 500 }),
      () => new Response('<html>'),
      broken,
    )
    await expect(link.state()).rejects.toThrow('refused')
    await expect(link.state()).rejects.toThrow('refused')
    await expect(link.config()).rejects.toThrow('unknown form')
    await expect(link.providers()).rejects.toThrow('broke off')
    await expect(link.evidence('00')).rejects.toThrow('cannot be reached')
    expect(failures).toEqual(['refused', 'malformed', 'broken_off', 'unreachable'])
  })

  it('distinguishes a rate limited attestation from an unavailable one', async () => {
    const { link } = linkTo(
      () => new Response('{"schema":"s"}'),
      () => new Response('{}', { status: 429 }),
      () => new Response('{}', { status: 503 }),
    )
    expect(await link.attestation()).toEqual({ ok: true, envelope: '{"schema":"s"}' })
    expect(await link.attestation({ nonce: '00', source: 's' })).toEqual({
      ok: false,
      reason: 'rate_limited',
    })
    expect(await link.attestation()).toEqual({ ok: false, reason: 'unavailable' })
  })

  it.each([
    ['an envelope', (link: HttpLink) => link.attestation()],
    ['a trust bundle', (link: HttpLink) => link.trustBundle()],
  ])('passes on nothing in place of %s that has not its form', async (_what, ask) => {
    for (const body of ['<html>', '[]', '{"other": 1}']) {
      const { link } = linkTo(() => new Response(body))
      await expect(ask(link)).rejects.toThrow('the enclave daemon answered in an unknown form')
    }
  })

  it('keeps the time of a call until its answer is read, and no longer', async () => {
    vi.useFakeTimers()
    const timers = ownTimers()
    const aborted: boolean[] = []
    const link = new HttpLink(
      {
        fetch: async (_url, init) => {
          init?.signal?.onAbort(() => aborted.push(true))
          return Response.json(STATE)
        },
      },
      { now: () => 0, keepAlive: () => {} },
    )
    await link.freshState()
    expect(await link.evidence('00')).toEqual(new TextEncoder().encode(JSON.stringify(STATE)))
    expect(timers.left()).toBe(0)
    vi.useRealTimers()
    expect(aborted).toEqual([])
  })

  const DIGEST = 'd1'.repeat(32)
  const head = { sha256: 'e1'.repeat(32), text: 'the head', evidence_refs: ['e2'.repeat(32)] }
  const { text: _text, ...headless } = head
  const signedUnder = (...heads: SignResponse['heads']) => ({
    kid: 'k',
    heads,
    receipts: heads.length > 0 ? [{ head: 0, tail: 'tail', sha256: DIGEST }] : [],
  })

  it('takes a receipt that came beside an answer, and names its head to the daemon from then on', () => {
    const { link } = linkTo()
    const first = link.includedReceipt('nova')
    const early = link.includedReceipt('nova')
    expect(first.knownHead).toBeUndefined()
    const receipt = { kid: 'k', head, tail: 'tail', sha256: DIGEST }
    expect(first.take(signedUnder(head))).toEqual(receipt)
    const next = link.includedReceipt('nova')
    expect([next.knownHead, link.includedReceipt('vega').knownHead]).toEqual([
      head.sha256,
      undefined,
    ])
    expect(next.take(signedUnder(headless))).toEqual(receipt)
    expect(early.take(signedUnder(head))).toEqual(receipt)
  })

  it('refuses a receipt that is none, or whose head was not named', () => {
    const { link, failures } = linkTo()
    const message = 'the enclave daemon answered in an unknown form'
    expect(() => link.includedReceipt('nova').take(signedUnder())).toThrow(message)
    expect(() => link.includedReceipt('nova').take(signedUnder(headless))).toThrow(message)
    expect(failures).toEqual(['malformed', 'malformed'])
  })

  it('has no evidence where the daemon holds none', async () => {
    const { link, failures } = linkTo(() => new Response('{}', { status: 404 }))
    expect(await link.evidence('00')).toBeUndefined()
    expect(failures).toEqual([])
  })
})
