import { utf8 } from '../../protocol/bytes.ts'
import { MAX_PREAMBLE_BYTES, type ResponsesPreamble } from '../../protocol/stream-record.ts'
import type { AnswerFormat, LastEvents, StreamFormat } from '../completion/format.ts'
import { extendItem, itemJson, newItem, type OutputItem } from '../formats/response-items.ts'
import { incompleteReason, openingEvents, responseJson } from '../formats/response-json.ts'
import { ResponsesChunks } from '../formats/responses-chunks.ts'
import { SequencedEvents } from '../formats/sequenced-events.ts'
import { failureCode } from '../http/responses-errors.ts'
import type { AnswerHead } from '../stream/answer-head.ts'
import { Blocks } from '../stream/blocks.ts'
import { choiceDelta, type ProviderAnswer } from '../stream/provider-answer.ts'
import type { UsageReport } from '../stream/usage-tally.ts'
import type { ResponsesRequest } from './request.ts'

/** The parts of a request that its answer depends on. */
export type AnswerOptions = Pick<ResponsesRequest, 'tools' | 'encryptedContent' | 'echo'>

/**
 * Memory for the echoed members of the request, as a multiple of their JSON length: they are held as values, and the first
 * events of a stream contain them twice.
 */
const ECHO_COPIES = 4

/**
 * How answers of `/v1/responses` are written. Only known types of events are sent, because one client library throws at
 * others.
 */
export function responsesFormat(options: AnswerOptions): AnswerFormat {
  const { tools, encryptedContent, echo } = options
  return {
    idPrefix: 'resp_',
    echoBytes: ECHO_COPIES * JSON.stringify(echo).length,
    chunkWriter: (head, takeMemory) =>
      new ResponsesChunks({
        answerId: head.id,
        tools,
        encryptedContent,
        opening: () => openingEvents(head, echo),
        takeMemory,
      }),
    chunkFormat: (head) => streamFormat(head, options),
    // The format would contain members of the request, which would have to travel to the daemon and back.
    wholeFormat: () => undefined,
    lastEvents: (head) => lastEvents(head, options),
    wholeBody: (answer, head, usage, service) =>
      responseBody(answer, head, usage, service, options),
  }
}

/** The format for the daemon; undefined where the echoed members of the request are too large for it to hold. */
function streamFormat(
  head: AnswerHead,
  { tools, encryptedContent, echo }: AnswerOptions,
): StreamFormat | undefined {
  const given: ResponsesPreamble = { opening: openingEvents(head, echo), tools: [...tools] }
  const preamble = utf8(JSON.stringify(given))
  if (preamble.length > MAX_PREAMBLE_BYTES) return undefined
  const encrypted_content = encryptedContent
  return {
    format: { door: 'responses', encrypted_content, ahead_bytes: preamble.length },
    preamble,
  }
}

/**
 * The sequence number of the last event when the daemon wrote the stream but has not reported its count of events: larger
 * than any that it can have used.
 */
const UNKNOWN_NUMBER = 2_147_483_647

const UNKNOWN_TAIL = { events: UNKNOWN_NUMBER, output: [] }

function lastEvents(head: AnswerHead, { echo }: AnswerOptions): LastEvents {
  return {
    close: ({ events: count, output }, end, service) => {
      const incomplete = incompleteReason(end)
      const status = incomplete === undefined ? 'completed' : 'incomplete'
      const state = { status, output, usage: end.usage } as const
      const response = responseJson(head, echo, { ...state, ...(incomplete && { incomplete }) })
      const events = new SequencedEvents(count)
      events.add(`response.${status}`, { response, service })
      return events.take()
    },
    fail: (tail, error) => {
      const { events: count, output } = tail ?? UNKNOWN_TAIL
      const opening = count === 0 ? openingEvents(head, echo) : { text: '', count }
      const failure = { code: failureCode(error.code), message: error.message }
      const response = responseJson(head, echo, { status: 'failed', output, error: failure })
      const events = new SequencedEvents(opening.count)
      events.add('response.failed', { response })
      return opening.text + events.take()
    },
  }
}

/** The body of a response that is not streamed. The format has one choice: the first. */
function responseBody(
  { choices: [choice] }: ProviderAnswer,
  head: AnswerHead,
  usage: UsageReport | undefined,
  service: object,
  options: AnswerOptions,
): object {
  if (choice === undefined) throw new Error('internal error: an answer without a choice')
  const itemOptions = { ...options, answerId: head.id }
  const incomplete = incompleteReason(choice)
  const items: OutputItem[] = []
  const blocks = new Blocks({
    start: (block) => void items.push(newItem(block, items.length, itemOptions)),
    piece: (text, logprobs) => {
      const item = items.at(-1)
      if (item !== undefined) extendItem(item, text, logprobs)
    },
    end: () => {},
  })
  blocks.take(choiceDelta(choice))
  blocks.finish()
  const status = incomplete === undefined ? 'completed' : 'incomplete'
  const output = items.map((item, index) =>
    itemJson(item, index === items.length - 1 ? status : 'completed', options),
  )
  const state = { status, output, usage, ...(incomplete && { incomplete }) } as const
  return { ...responseJson(head, options.echo, state), service }
}
