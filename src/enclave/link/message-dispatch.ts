import { EGRESS_ERROR_HEADER, LINK_PATHS } from '../../protocol/link.ts'
import {
  callHeadSchema,
  MAX_MESSAGE_BODY_BYTES,
  type CallHead,
} from '../../protocol/link-messages.ts'
import { traceError } from '../../protocol/error-trace.ts'
import { LinkError } from '../link-error.ts'
import type { Log } from '../log.ts'
import type { MessageCaller } from '../link-server/message-caller.ts'
import type { MessageCall, MessageListener } from '../link-server/message-server.ts'
import type { LinkReply } from '../link-server/reply.ts'
import { parseEgressTarget, type Egress } from '../open-egress.ts'
import { bodyReader } from '../read-body.ts'
import { refusal } from './answer.ts'
import { answerForwarded, type AnswerRoute } from './dispatch.ts'

interface MessageSubject {
  /** The routes with complete answers; a call that came as a message counts as a POST. */
  readonly routes: readonly AnswerRoute[]
  readonly egress: Pick<Egress, 'carryMessage'>
  readonly log: Log
}

/**
 * Answers calls that come as messages like the same calls over HTTP; in addition, a message can request the client's
 * complete answer.
 */
export function createMessageDispatcher(subject: MessageSubject): MessageListener {
  return (call, caller) => void answer(call, caller, subject)
}

async function answer(
  { head, body }: MessageCall,
  caller: MessageCaller,
  subject: MessageSubject,
): Promise<void> {
  const { routes, log } = subject
  const parsed = parseHead(head)
  if (parsed === undefined) {
    const malformed = new LinkError('invalid_request', 'the head of the message is malformed')
    return send(refusal(malformed), caller)
  }
  if (parsed.path.startsWith(`${LINK_PATHS.egress}/`)) {
    return carry(parsed, body, caller, subject)
  }
  const call = { method: 'POST', target: parsed.path, body: bodyReader(body) }
  send(await answerForwarded(routes, call, log), caller)
}

async function carry(
  { path, headers, whole }: CallHead,
  body: Uint8Array,
  caller: MessageCaller,
  { egress, log }: MessageSubject,
): Promise<void> {
  try {
    const { pathname, search } = new URL(`https://link${path}`)
    const target = parseEgressTarget(pathname.slice(LINK_PATHS.egress.length), search)
    await egress.carryMessage({ ...target, headers, body, whole, caller })
  } catch (error) {
    if (!(error instanceof LinkError)) {
      log('link_failed', { path: LINK_PATHS.egress, ...traceError(error) })
    }
    const code = error instanceof LinkError ? error.code : 'internal'
    send(refusal(error), caller, { [EGRESS_ERROR_HEADER]: code })
  }
}

function parseHead(head: string): CallHead | undefined {
  try {
    return callHeadSchema.safeParse(JSON.parse(head)).data
  } catch {
    return undefined
  }
}

function send(
  reply: LinkReply,
  caller: MessageCaller,
  further: Readonly<Record<string, string>> = {},
): void {
  const { status, contentType, body } = reply
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (bytes.length > MAX_MESSAGE_BODY_BYTES) {
    return send(refusal(new Error('an answer that is not a message')), caller)
  }
  const headers = {
    'content-type': contentType,
    'content-length': String(bytes.length),
    ...further,
  }
  caller.answer({ status, headers }, bytes)
}
