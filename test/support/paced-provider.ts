import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { listen } from './listen.ts'

/** A provider in the test's own process, whose streams take as long as a test needs. */
export interface PacedProvider {
  readonly baseUrl: string
  /** The `Authorization` headers of all requests so far. */
  readonly keys: readonly (string | undefined)[]
  /** Sends the ends of the streams that are held. */
  letGo(): void
  close(): void
}

const requestSchema = z.looseObject({ model: z.string(), stream: z.boolean().default(false) })

const FRAMES = 10

/**
 * `model` is `paced-<ms>`: how long an answer takes from its first frame to its last; the last frames of a stream of `paced-held`
 * wait until the test lets them go.
 */
export async function startPacedProvider(): Promise<PacedProvider> {
  const keys: (string | undefined)[] = []
  const held: (() => void)[] = []
  const letGo = () => held.splice(0).forEach((resolve) => resolve())
  const server = createServer((request, response) => {
    keys.push(request.headers.authorization)
    answer(request, response, held).catch(() => response.destroy())
  })
  const port = await listen(server)
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    keys,
    letGo,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  held: (() => void)[],
): Promise<void> {
  const { model, stream } = requestSchema.parse(JSON.parse(await text(request)))
  const pace = model.split('-').at(-1)
  if (pace === 'held') {
    const released = new Promise<void>((resolve) => void held.push(resolve))
    return sendStream(response, (frame) => (frame === FRAMES - 1 ? released : Promise.resolve()))
  }
  const ms = Number(pace)
  await (stream ? sendStream(response, () => delay(ms / FRAMES)) : sendWhole(response, ms))
}

async function sendWhole(response: ServerResponse, ms: number): Promise<void> {
  await delay(ms)
  const message = { role: 'assistant', content: 'done' }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ id: 'c', object: 'chat.completion', choices, usage: USAGE }))
}

/** @param pause what passes after each frame */
async function sendStream(
  response: ServerResponse,
  pause: (frame: number) => Promise<void>,
): Promise<void> {
  response.setHeader('content-type', 'text/event-stream')
  for (let frame = 0; frame < FRAMES; frame++) {
    send(response, {
      choices: [{ index: 0, delta: { content: `${frame} ` }, finish_reason: null }],
    })
    await pause(frame)
  }
  send(response, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  send(response, { choices: [], usage: USAGE })
  response.end('data: [DONE]\n\n')
}

function send(response: ServerResponse, chunk: object): void {
  response.write(
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', ...chunk })}\n\n`,
  )
}

const USAGE = { prompt_tokens: 5, completion_tokens: 10, total_tokens: 15 }
