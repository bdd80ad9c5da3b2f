/** The mock provider's answers, prepared as HTTP/1.1 bytes, so that sending them costs almost no CPU. */

/** How a model of the mock answers: `whole`, or a stream with a name such as `paced-250x20`. */
export type Behaviour =
  | { readonly kind: 'whole' }
  /** `frames` deltas, one every `everyMs`; 0: all at once. */
  | { readonly kind: 'paced'; readonly frames: number; readonly everyMs: number }
  /** One delta of `kibibytes`, in a single line. */
  | { readonly kind: 'line'; readonly kibibytes: number }

const MODEL = /"model"\s*:\s*"(whole|paced|line)(?:-(\d+)x(\d+))?"/

/** Reads the behaviour from the model name in a request body; an unknown one is answered `whole`. */
export function behaviourOf(body: Buffer): Behaviour {
  const at = body.indexOf('"model"')
  const [, kind, first = '0', second = '0'] =
    at < 0 ? [] : (MODEL.exec(body.toString('latin1', at, at + 64)) ?? [])
  if (kind === 'paced') return { kind, frames: Number(first), everyMs: Number(second) }
  return kind === 'line' ? { kind, kibibytes: Number(first) } : { kind: 'whole' }
}

const WHOLE_BODY = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_760_000_000,
  model: 'bench',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'Twelve words of an answer that was laid out long ago, once.',
      },
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 21, completion_tokens: 14, total_tokens: 35 },
})

/** A finished answer of about 350 bytes. */
export const WHOLE_ANSWER = wholeAnswer(WHOLE_BODY)

/** The number of dimensions of an embedding, as in a small model. */
const DIMENSIONS = 384

/** The answers to requests other than chat, by the end of the path. */
export const OTHER_ANSWERS: ReadonlyMap<string, Buffer> = new Map([
  [
    '/embeddings',
    wholeAnswer(
      JSON.stringify({
        object: 'list',
        model: 'bench',
        data: [
          {
            object: 'embedding',
            index: 0,
            embedding: Array.from({ length: DIMENSIONS }, (_, index) => index / 512),
          },
        ],
        usage: { prompt_tokens: 21, total_tokens: 21 },
      }),
    ),
  ],
  [
    '/audio/transcriptions',
    wholeAnswer(JSON.stringify({ text: 'A second of silence.', language: 'en', duration: 1 })),
  ],
])

function wholeAnswer(body: string): Buffer {
  const head = `content-type: application/json\r\ncontent-length: ${body.length}`
  return Buffer.from(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`)
}

const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'

/** One chunk on the wire with one event. */
export const DELTA_FRAME = event({ choices: [choice({ content: ' token' })] })

/** The head and the first delta, which are sent in one packet. */
export const STREAM_START = Buffer.concat([
  Buffer.from(STREAM_HEAD),
  event({ choices: [choice({ role: 'assistant', content: ' token' })] }),
])

/** The head and a first delta in one very long line. */
export function longLineStart(kibibytes: number): Buffer {
  const content = 'x'.repeat(kibibytes * 1024)
  const line = event({ choices: [choice({ role: 'assistant', content })] })
  return Buffer.concat([Buffer.from(STREAM_HEAD), line])
}

/** Finish reason, usage, `[DONE]`, and the end of the body. */
export const STREAM_END = Buffer.concat([
  event({ choices: [choice({}, 'stop')] }),
  event({
    choices: [],
    usage: { prompt_tokens: 21, completion_tokens: 250, total_tokens: 271 },
  }),
  chunk('data: [DONE]\n\n'),
  Buffer.from('0\r\n\r\n'),
])

function choice(delta: object, finishReason: string | null = null) {
  return { index: 0, delta, finish_reason: finishReason }
}

function event(members: object): Buffer {
  const base = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_760_000_000 }
  return chunk(`data: ${JSON.stringify({ ...base, model: 'bench', ...members })}\n\n`)
}

function chunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}
