import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http'
import {
  array,
  assert as assertProperty,
  asyncProperty,
  constantFrom,
  oneof,
  string,
} from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ChunkJoiner } from '../../../src/enclave/egress/chunk-joiner.ts'
import { createProviderEgress } from '../../../src/enclave/egress/provider-egress.ts'
import type { Egress } from '../../../src/enclave/open-egress.ts'
import { makeTlsIdentity } from '../../../src/enclave/keys/tls-identity.ts'
import { createObservedFetch } from '../../../src/enclave/adapters/observed-fetch.ts'
import {
  startByteProvider,
  type ByteProvider,
  type ByteScript,
} from '../../support/byte-provider.ts'
import { printStreamSpec } from '../../../src/protocol/stream-record.ts'
import { startEgressLink, type EgressLink } from '../../support/egress-link.ts'
import { provenAlways } from '../../support/proven-always.ts'
import { HOSTILE_ANSWERS, HOSTILE_RECORDS, HOSTILE_STREAMS } from './hostile-answers.ts'

/**
 * A hostile attested provider. Whatever bytes it sends, each call ends, and the daemon keeps running: an uncaught
 * exception would end it, and fails this suite.
 */

const SEED = 20_261_122
/** Long for the time limits of a call, and for a machine that has other work: that a call ends is what counts. */
const ENDS_WITHIN_MS = 20_000

/** When the daemon gives up a document of its own, whatever its provider sends. */
const DOCUMENT_MS = 4_000

let provider: ByteProvider
let egress: Egress
let link: EgressLink

const sound: ByteScript = (tls) => void tls.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')

beforeAll(async () => {
  const identity = await makeTlsIdentity([], new Date())
  provider = await startByteProvider(identity, sound)
  const baseUrl = `https://127.0.0.1:${provider.port}/v1`
  const proofs = provenAlways('nova', baseUrl, identity.spkiSha256)
  egress = createProviderEgress({
    proofs,
    connectMs: () => 10_000,
    joiner: new ChunkJoiner({ now: Date.now }),
    maxStreams: 1_000,
    now: Date.now,
    log: () => {},
  })
  link = await startEgressLink(egress)
})
afterAll(async () => {
  egress.close()
  await link.close()
  await provider.close()
})

/** The outcome of a call: the status, `broken` when it failed, `pending` when it does not end. */
async function call(sent: OutgoingHttpHeaders = {}): Promise<string> {
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(() => late.resolve('pending'), ENDS_WITHIN_MS)
  const answer = link.post('nova', 'a prompt', sent).then(
    ({ status, headers }) => `${status} ${String(headers['x-cmr-egress-error'] ?? '')}`.trim(),
    () => 'broken',
  )
  try {
    return await Promise.race([answer, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Asks the daemon to write the chunks. */
const streamSpec = (): OutgoingHttpHeaders => ({
  'x-cmr-chunks': printStreamSpec({
    stream: randomUUID(),
    owner: 'cus_1',
    head: { id: 'chatcmpl-1', created: 1, model: 'm' },
    format: { door: 'chat' },
    billing: { prompt_estimate: 7, max_prompt_tokens: 1_000, max_completion_tokens: 1_000 },
    include_reasoning: true,
    idle_ms: 1_000,
    keep_alive_ms: 1_000,
    record_ms: 1_000,
  }),
})

/** Sends the bytes and closes the connection, as one that only ever fell silent would by its time-out. */
const sending =
  (bytes: string | Uint8Array): ByteScript =>
  (tls) => {
    tls.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    setTimeout(() => tls.end(), 5)
  }

/** A call may meet the connection of a hostile answer just as the provider closes it; the next one has a new connection. */
async function expectSound(): Promise<void> {
  provider.script = sound
  const first = await call()
  expect(first === '502 provider_unreachable' ? await call() : first).toBe('200')
}

describe('the daemon survives', () => {
  test.each(HOSTILE_ANSWERS)('$name', async ({ bytes }) => {
    provider.script = sending(bytes)
    expect(await call()).toMatch(/^([2-5]\d\d( provider_\w+)?|broken)$/)
    await expectSound()
  })

  test(
    'each of them where it is to write the chunks of a stream',
    { timeout: 60_000 },
    async () => {
      for (const { name, bytes } of [...HOSTILE_ANSWERS, ...HOSTILE_STREAMS]) {
        provider.script = sending(bytes)
        expect(`${name}: ${await call(streamSpec())}`).toMatch(
          /: ([2-5]\d\d( provider_\w+)?|broken)$/,
        )
      }
      await expectSound()
    },
  )

  test('a stream that ends in the middle of what cannot be read, for a worker that does not read', async () => {
    const delta = 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    for (const end of ['data: {', 'data: 1\n\n', '\xff']) {
      provider.script = (tls) => {
        tls.write(`HTTP/1.1 200 OK\r\n\r\n${delta.repeat(40_000)}`)
        tls.end(Buffer.from(end, 'latin1'))
      }
      const answer = await link.open('nova', 'a prompt', undefined, streamSpec())
      answer.on('error', () => {})
      await once(answer, 'readable')
      answer.destroy()
      await expectSound()
    }
  })

  test.each(HOSTILE_RECORDS)('$name, before an answer and inside one', async ({ bytes }) => {
    for (const begun of ['', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n']) {
      provider.script = (tls, wire) => {
        if (begun !== '') tls.write(begun)
        setTimeout(() => wire.end(bytes), 5)
      }
      expect(await call()).toMatch(/^(502 provider_unreachable|broken)$/)
      await expectSound()
    }
  })

  test(
    'any bytes: parts of sound and of hostile answers, put together by chance',
    { timeout: 60_000 },
    async () => {
      const lines = HOSTILE_ANSWERS.flatMap(({ bytes }) => bytes.split(/(?<=\r\n)/)).filter(
        (line) => line.length < 2_000,
      )
      const part = oneof(
        constantFrom(...lines),
        constantFrom(
          'HTTP/1.1 200 OK\r\n',
          'content-length: 3\r\n',
          '\r\n',
          'abc',
          '3\r\nabc\r\n',
          '0\r\n\r\n',
        ),
        string({ unit: 'binary', maxLength: 20 }),
      )
      const answers = array(part, { minLength: 1, maxLength: 12 })
      await assertProperty(
        asyncProperty(answers, async (parts) => {
          provider.script = sending(parts.join(''))
          expect(await call()).toMatch(/^([2-5]\d\d( provider_\w+)?|broken)$/)
        }),
        { seed: SEED, numRuns: 100 },
      )
      await expectSound()
    },
  )
})

describe('what cannot be passed on', () => {
  test.each(['099', '101', '600', '999'])('a status of %s is refused by name', async (status) => {
    provider.script = sending(`HTTP/1.1 ${status} X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n`)
    expect(await call()).toBe('502 provider_malformed')
  })

  test('an upgrade is refused at once, and not when time is up', async () => {
    provider.script = (tls) =>
      void tls.write('HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n')
    expect(await call()).toBe('502 provider_malformed')
  })

  test('interim answers without end are refused', async () => {
    provider.script = (tls) => {
      const timer = setInterval(() => tls.write('HTTP/1.1 103 X\r\n\r\n'), 1)
      tls.once('close', () => clearInterval(timer))
    }
    expect(await call()).toBe('502 provider_malformed')
  })
})

describe('documents that the daemon itself gets survive it too', () => {
  test('evidence', { timeout: 60_000 }, async () => {
    const url = `https://127.0.0.1:${provider.port}/evidence`
    for (const { name, bytes } of HOSTILE_ANSWERS) {
      provider.script = sending(bytes)
      const got = createObservedFetch(Date.now)({ url, maxBytes: 1_000, webPki: false })
      const outcome = await got.then(
        ({ body }) => `${body.length}`,
        (error: unknown) => (error instanceof Error ? error.name : 'unknown'),
      )
      expect(`${name}: ${outcome}`).toMatch(/: (\d+|EvidenceRefused)$/)
    }
  })

  test('small answers of a provider', { timeout: 60_000 }, async () => {
    for (const { bytes } of HOSTILE_ANSWERS) {
      provider.script = sending(bytes)
      const signal = AbortSignal.timeout(DOCUMENT_MS)
      const got = await egress.get('nova', { path: '/x', maxBytes: 1_000, signal })
      expect(got === undefined || got.body.length <= 1_000).toBe(true)
    }
  })
})
