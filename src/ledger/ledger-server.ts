import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MessageCaller } from '../enclave/link-server/message-caller.ts'
import type { MessageCall } from '../enclave/link-server/message-server.ts'
import { sendReply } from '../enclave/link-server/reply.ts'
import { startLinkServer, type LinkServer } from '../enclave/link-server/server.ts'
import { readBody } from '../enclave/read-body.ts'
import type { LinkServerPlan } from '../protocol/boot.ts'
import { callHeadSchema, MAX_MESSAGE_BODY_BYTES, WAITING_PATH } from '../protocol/link-messages.ts'
import { LargeAnswers } from './large-answers.ts'

/** The answer to a call. */
export interface LedgerReply {
  readonly status: 200 | 400 | 404
  /** JSON. */
  readonly body: Uint8Array
}

/** Answers a call. It rejects only where the process must end. */
export type AnswerCall = (path: string, body: Uint8Array) => Promise<LedgerReply>

export interface LedgerServerOptions {
  /** The id of this process; another one after each start. */
  readonly process: string
  /** The largest body of a call over HTTP, bytes. */
  readonly maxBodyBytes: number
  /** Time limit of a connection's handshake, ms. */
  readonly handshakeMs: number
}

const NOTHING = new Uint8Array()
const REFUSED: LedgerReply = { status: 400, body: NOTHING }

/**
 * Listens for the workers, and answers their calls, which come over HTTP or, where they are small, as messages on a
 * connection.
 */
export function startLedgerServer(
  link: LinkServerPlan,
  { process, maxBodyBytes, handshakeMs }: LedgerServerOptions,
  answer: AnswerCall,
): Promise<LinkServer> {
  const waiting = new LargeAnswers(process)
  return startLinkServer(
    link,
    (request, response) => void answerRequest({ request, response, maxBodyBytes, waiting, answer }),
    {
      limits: { handshakeMs },
      messages: (call, caller) => void answerMessage(call, { caller, waiting, answer }),
    },
  )
}

interface HttpCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly maxBodyBytes: number
  readonly waiting: LargeAnswers
  readonly answer: AnswerCall
}

async function answerRequest({ request, response, ...terms }: HttpCall): Promise<void> {
  // Undefined where the body is too large, or the worker disconnected before its end.
  const body = await readBody(request, terms.maxBodyBytes).catch(() => undefined)
  if (body === undefined) response.setHeader('connection', 'close')
  const { url: path = '/' } = request
  const reply = body === undefined ? REFUSED : await replyTo(path, body, terms)
  sendReply(response, { ...reply, contentType: 'application/json' })
}

async function replyTo(
  path: string,
  body: Uint8Array,
  { waiting, answer }: Pick<HttpCall, 'waiting' | 'answer'>,
): Promise<LedgerReply> {
  if (!path.startsWith(`${WAITING_PATH}/`)) return answer(path, body)
  const waited = waiting.take(path.slice(WAITING_PATH.length + 1))
  return waited === undefined ? { status: 404, body: NOTHING } : { status: 200, body: waited }
}

interface MessageTerms {
  readonly caller: MessageCaller
  readonly waiting: LargeAnswers
  readonly answer: AnswerCall
}

async function answerMessage(
  { head, body }: MessageCall,
  { caller, waiting, answer }: MessageTerms,
): Promise<void> {
  const path = pathIn(head)
  const { status, body: bytes } = path === undefined ? REFUSED : await answer(path, body)
  if (bytes.length <= MAX_MESSAGE_BODY_BYTES) caller.answer({ status, headers: {} }, bytes)
  else if (!caller.hasDisconnected) caller.wait(waiting.keep(bytes))
}

/** Undefined where the head is malformed. */
function pathIn(head: string): string | undefined {
  try {
    return callHeadSchema.safeParse(JSON.parse(head)).data?.path
  } catch {
    return undefined
  }
}
