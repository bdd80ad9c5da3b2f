import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorOf } from '../support/answers.ts'
import { wav } from '../support/audio-samples.ts'
import { listen } from '../support/listen.ts'
import { startStack, type Stack } from '../support/stack.ts'
import { formBytes, post } from '../support/transcription-stack.ts'

/** Providers that do not wait for the end of a large upload, by the first segment of their path. */
const MANNERS: Readonly<Record<string, (socket: Socket) => void>> = {
  deaf: (socket) => void socket.pause(),
  hasty: (socket) => {
    socket.pause()
    socket.end(answer('413 Payload Too Large', '{}'))
  },
  rude: (socket) => {
    socket.pause()
    setTimeout(() => socket.destroy(), 50)
  },
  glib: (socket) => {
    socket.pause()
    socket.write(answer('200 OK', '{"text":"I need not hear it"}'))
  },
}

let server: Server
let stack: Stack

beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (head: Buffer) => {
      const manner = /^POST \/([a-z]+)\//.exec(head.toString('latin1'))?.[1] ?? ''
      MANNERS[manner]?.(socket)
    })
  })
  const port = await listen(server)
  const names = Object.keys(MANNERS)
  const providers = names.map((name) => [
    name,
    { base_url: `http://127.0.0.1:${port}/${name}/v1`, attestation: { adapter: 'none' } },
  ])
  stack = await startStack({
    config: {
      service: { name: 'router', mode: 'local', timeouts: { transcription_ms: 2_000 } },
      providers: Object.fromEntries(providers) as unknown,
      routes: names.map((provider) => ({
        model_key: 'whisper',
        provider,
        upstream_model: 'whisper',
        type: 'transcription',
        pricing: { currency: 'eur', billing_unit: 'request', unit_amount: 0.01 },
      })),
    },
  })
})
afterAll(async () => {
  server.close()
  await stack.stop()
})

const FILE = wav(600).bytes

async function refusalBy(provider: string): Promise<[status: number, code: string]> {
  const body = formBytes([
    { name: 'model', content: `${provider}/whisper` },
    { name: 'file', fileName: 'a.wav', content: FILE },
  ])
  const refused = await post(stack, body)
  return [refused.status, (await errorOf(refused)).code]
}

function answer(status: string, body: string): string {
  const type = 'Content-Type: application/json'
  return `HTTP/1.1 ${status}\r\n${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

describe('a provider that gets a large file', () => {
  test.each<[what: string, provider: string, refusal: [number, string]]>([
    ['never reads it', 'deaf', [502, 'upstream_error']],
    ['refuses it before it is sent', 'hasty', [400, 'file_too_large']],
    ['hangs up on it', 'rude', [502, 'upstream_error']],
    ['answers without having heard it', 'glib', [502, 'upstream_error']],
  ])('and %s is refused as such', async (_what, provider, refusal) => {
    expect(await refusalBy(provider)).toEqual(refusal)
  })

  test('does the worker no harm, however often', async () => {
    const all = Array.from({ length: 3 }, () => Object.keys(MANNERS)).flat()
    const refusals = await Promise.all(all.map(refusalBy))
    expect(refusals.map(([status]) => status)).not.toContain(200)
    expect((await stack.fetch('/healthz')).status).toBe(200)
  })
})
