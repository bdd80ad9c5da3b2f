import { expect, it } from 'vitest'
import type {
  WholeAnswerCall,
  WrittenWholeAnswer,
} from '../../../src/enclave/egress/whole-answer-call.ts'
import { WholeAnswers } from '../../../src/enclave/whole-answers/whole-answers.ts'
import { MAX_MESSAGE_BODY_BYTES } from '../../../src/protocol/link-messages.ts'
import type { SignResponse } from '../../../src/protocol/link.ts'
import { wholeAnswerSpec } from '../../support/whole-answer-spec.ts'

const DIGEST = 'd1'.repeat(32)
const ANSWER = Buffer.from('{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}')

function call(id: string, withReceipt = true): WholeAnswerCall {
  const receipt = {
    jti: '2f1c6a3e-8f5b-4c1e-9c55-0d9f1b2a3c4d',
    endpoint: '/v1/chat/completions',
    client_request_digest: DIGEST,
    bills_tokens: true,
    configuration_sha256: DIGEST,
    known_head: 'e2'.repeat(32),
  }
  const spec = wholeAnswerSpec({ id, receipt: withReceipt ? receipt : null })
  return { spec, provider: 'nova', evidenceSha256: 'e1'.repeat(32), request: ANSWER }
}

const SIGNED: SignResponse = {
  kid: 'k',
  heads: [{ sha256: DIGEST, text: 'head', evidence_refs: [] }],
  receipts: [{ head: 0, tail: 'tail', sha256: DIGEST }],
}

type Sign = ConstructorParameters<typeof WholeAnswers>[0]['sign']

function opened(sign: Sign = () => SIGNED) {
  const logged: unknown[] = []
  const steps: string[] = []
  const answers = new WholeAnswers({
    sign: (...given) => {
      steps.push('sign')
      return sign(...given)
    },
    now: () => 1_000,
    log: (event, fields) => logged.push([event, fields]),
  })
  const add = (given: WholeAnswerCall, tell: (written: WrittenWholeAnswer | undefined) => void) =>
    answers.add(given, ANSWER, { hasDisconnected: () => false, tell })
  const write = async (given: WholeAnswerCall, answer = ANSWER, hasDisconnected = false) => {
    const { promise, resolve } = Promise.withResolvers<WrittenWholeAnswer | undefined>()
    const tell = (written: WrittenWholeAnswer | undefined) => {
      steps.push('tell')
      resolve(written)
    }
    answers.add(given, answer, { hasDisconnected: () => hasDisconnected, tell })
    return promise
  }
  return { add, write, steps, logged }
}

it('signs what its specification and its connection say, under the head that the worker has', async () => {
  const asked: unknown[] = []
  const { write } = opened((...given) => {
    asked.push(given)
    return SIGNED
  })
  const written = await write(call('1'))
  expect(written?.record.signed).toBe(SIGNED)
  expect(asked).toMatchObject([
    [
      {
        claims: { client_request_digest: DIGEST, routed_model: 'nova/glm' },
        provider: 'nova',
        configuration_sha256: DIGEST,
        evidence_sha256: 'e1'.repeat(32),
      },
      'e2'.repeat(32),
    ],
  ])
})

it('signs the answers of one turn together, and tells of each the one that it asked for', async () => {
  const { write, steps } = opened()
  const written = await Promise.all(['1', '2', '3'].map((id) => write(call(id))))
  expect(written.map((whole) => JSON.parse(whole?.body.toString() ?? '').id)).toEqual([
    '1',
    '2',
    '3',
  ])
  expect(steps).toEqual(['sign', 'sign', 'sign', 'tell', 'tell', 'tell'])
})

it('leaves an answer to the worker that cannot be read, or whose signing fails, and writes the others', async () => {
  let count = 0
  const { write, logged } = opened(() => {
    count += 1
    if (count === 1) throw new TypeError('unexpected')
    return SIGNED
  })
  const [failed, broken, sound] = await Promise.all([
    write(call('1')),
    write(call('2'), Buffer.from('{')),
    write(call('3')),
  ])
  expect([failed, broken]).toEqual([undefined, undefined])
  expect(sound?.record.signed).toBe(SIGNED)
  expect(logged).toMatchObject([['link_failed', { path: '/v1/egress', error: 'TypeError' }]])
})

it('has no receipt where none is wanted, or it cannot be signed at once', async () => {
  const { write, steps } = opened(() => undefined)
  expect((await write(call('1', false)))?.record.signed).toBeNull()
  expect(steps).toEqual(['tell'])
  expect((await write(call('2')))?.record.signed).toBeNull()
})

it('does nothing for a caller that has left', async () => {
  const { write, steps } = opened()
  void write(call('1'), ANSWER, true)
  await write(call('2'))
  expect(steps).toEqual(['sign', 'tell'])
})

it('writes sixteen in one go at most, of large ones one, and other work comes in between', async () => {
  for (const [answer, together] of [
    [ANSWER, 16],
    [Buffer.concat([ANSWER, Buffer.alloc(40_000, ' ')]), 1],
  ] as const) {
    const { write, steps } = opened()
    const all = Array.from({ length: 20 }, (_, index) => write(call(String(index)), answer))
    await new Promise((resolve) => setImmediate(resolve))
    expect(steps.filter((step) => step === 'tell')).toHaveLength(together)
    await Promise.all(all)
    expect(steps.filter((step) => step === 'tell')).toHaveLength(20)
  }
})

it('tells all others where one that waits fails', async () => {
  const { add, write, logged } = opened()
  add(call('1'), () => {
    throw new TypeError('unexpected')
  })
  expect((await write(call('2')))?.record.signed).toBe(SIGNED)
  expect(logged).toMatchObject([['link_failed', { path: '/v1/egress', error: 'TypeError' }]])
})

it('leaves out a receipt that is too long for one message together with its answer', async () => {
  const [head] = SIGNED.heads
  const long = {
    ...SIGNED,
    heads: [
      { ...head, sha256: DIGEST, text: 'x'.repeat(MAX_MESSAGE_BODY_BYTES), evidence_refs: [] },
    ],
  }
  const written = await opened(() => long).write(call('1'))
  expect(written?.record.signed).toBeNull()
  expect(written?.body.toString()).toContain('"content":"a"')
})
