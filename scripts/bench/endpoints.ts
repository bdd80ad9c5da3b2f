import { encryptRequest } from '../../src/client/ehbp-request.ts'
import { ENCAPSULATED_KEY_HEADER, KEY_CONFIG_PATH } from '../../src/protocol/ehbp.ts'
import { EMBEDDING, TRANSCRIPTION } from './behaviours.ts'
import type { Entrant } from './run.ts'
import { chatBody, requestText, type ChatBody, type MakeRequests, type System } from './system.ts'
import { WARM_UP_ENDPOINT, type WindowKind } from './windows.ts'

/** An endpoint of the router other than chat: its name, the windows it is measured in, and its requests. */
interface OtherEndpoint {
  readonly name: string
  readonly kinds: readonly WindowKind[]
  readonly requests: (port: number) => MakeRequests
}

const QUESTION = 'Say something short.'

const WHOLE_ONLY: readonly WindowKind[] = ['whole-64']
const WHOLE_AND_STREAMS: readonly WindowKind[] = ['whole-64', 'streams-64']

/** Every endpoint other than chat; its figures are shown next to those of chat. */
const ENDPOINTS: readonly OtherEndpoint[] = [
  {
    name: 'responses',
    kinds: WHOLE_AND_STREAMS,
    requests: () =>
      jsonEndpoint('/v1/responses', (model, { stream, content = QUESTION }) => ({
        model,
        stream,
        input: content,
        store: false,
      })),
  },
  {
    name: 'messages',
    kinds: WHOLE_AND_STREAMS,
    requests: () =>
      jsonEndpoint('/v1/messages', (model, { stream, content = QUESTION }) => ({
        model,
        stream,
        max_tokens: 1_024,
        messages: [{ role: 'user', content }],
      })),
  },
  {
    name: 'embeddings',
    kinds: WHOLE_ONLY,
    requests: () => jsonEndpoint('/v1/embeddings', () => ({ model: EMBEDDING, input: QUESTION })),
  },
  { name: 'transcription', kinds: WHOLE_ONLY, requests: () => transcriptions },
  { name: 'encrypted (EHBP)', kinds: WHOLE_ONLY, requests: (port) => encrypted(port) },
]

/** The names of the endpoints, in the order of their rows. */
export const OTHER_ENDPOINTS = ENDPOINTS.map(({ name }) => name)

/** The other endpoints of a router, each as an entrant; all use the same processes. */
export function otherEndpoints(
  router: System,
): readonly Pick<Entrant, 'system' | 'kinds' | 'warmUp'>[] {
  return ENDPOINTS.map(({ name, kinds, requests }) => ({
    system: { ...router, name, requests: requests(router.port) },
    kinds,
    warmUp: WARM_UP_ENDPOINT,
  }))
}

function jsonEndpoint(
  path: string,
  bodyOf: (model: string, body: ChatBody) => object,
): MakeRequests {
  return (callers, model, body) => {
    const text = JSON.stringify(bodyOf(model, body))
    return callers.map((caller) => requestText({ ...caller, path }, text))
  }
}

const BOUNDARY = 'boundary-of-the-benchmark'

const transcriptions: MakeRequests = (callers) => {
  const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }
  const body = Buffer.concat([
    part('name="model"', Buffer.from(TRANSCRIPTION)),
    part('name="file"; filename="silence.wav"\r\nContent-Type: audio/wav', silence()),
    Buffer.from(`--${BOUNDARY}--\r\n`),
  ])
  return callers.map((caller) =>
    requestText(
      { path: '/v1/audio/transcriptions', headers: { ...caller.headers, ...headers } },
      body,
    ),
  )
}

function part(disposition: string, content: Buffer): Buffer {
  const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), content, Buffer.from('\r\n')])
}

const SAMPLE_RATE = 8_000

/** One second of silence as a WAV file, 16 bits, one channel: 16 KB. */
function silence(): Buffer {
  const data = SAMPLE_RATE * 2
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + data, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(SAMPLE_RATE, 24)
  head.writeUInt32LE(SAMPLE_RATE * 2, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36)
  head.writeUInt32LE(data, 40)
  return Buffer.concat([head, Buffer.alloc(data)])
}

/** More than any system answers in one window, because the router accepts each encrypted request only once. */
const ENCRYPTED_REQUESTS = 6_500

/** Chat requests, each encrypted separately to the router's key. */
function encrypted(port: number): MakeRequests {
  return async (callers, model, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${KEY_CONFIG_PATH}`)
    const keyConfig = new Uint8Array(await answer.arrayBuffer())
    const plain = new Uint8Array(Buffer.from(chatBody(model, body)))
    const one = async (index: number) => {
      const caller = callers[index % callers.length]
      if (caller === undefined) throw new Error('internal error: an endpoint without callers')
      const { enc, body: sealed } = await encryptRequest(keyConfig, plain)
      const headers = { ...caller.headers, [ENCAPSULATED_KEY_HEADER]: enc }
      return requestText({ ...caller, headers }, Buffer.from(sealed))
    }
    return Promise.all(Array.from({ length: ENCRYPTED_REQUESTS }, (_, index) => one(index)))
  }
}
