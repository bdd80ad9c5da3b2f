import { ApiError } from '../http/errors.ts'
import type { JsonObject } from '../stream/json-object.ts'

export interface TextPart {
  readonly type: 'text'
  readonly text: string
}

/** One part of a message's content as the chat format has it. */
export type ContentPart =
  | TextPart
  | {
      readonly type: 'image_url'
      readonly image_url: { readonly url: string; readonly detail?: string }
    }
  | {
      readonly type: 'file'
      readonly file: { readonly file_data: string; readonly filename?: string }
    }

/**
 * Requires that a part of a message is text; for messages of other roles than the user.
 * @param at its place in the request
 * @throws ApiError for an image or a file, which the chat format allows only in messages of the user
 */
export function requireText(part: ContentPart, at: string): TextPart {
  if (part.type === 'text') return part
  const param = `${at}.type`
  const message = `"${param}": images and files may only be in messages of the user.`
  throw new ApiError('invalid_request_error', message, { param })
}

/** A tool call as the chat format has it. */
export interface HistoryCall {
  readonly id: string
  readonly name: string
  /** JSON text. */
  readonly arguments: string
}

/** An assistant message with the results of its calls. */
interface Turn {
  readonly role: 'assistant'
  reasoning: string
  /** Reasoning after the turn's text or a call. It belongs to this message, unless another text follows. */
  lastReasoning: string
  content: string | undefined
  readonly calls: HistoryCall[]
  readonly results: JsonObject[]
  /** Images and files in tool results: chat's tool messages take text only. */
  readonly media: ContentPart[]
}

/** One entry of the conversation; the chat format allows images and files only in messages of the user. */
type Entry =
  | { readonly role: 'system'; readonly parts: TextPart[] }
  | { readonly role: 'user'; readonly parts: ContentPart[] }
  | Turn

/**
 * Builds chat messages from formats whose turns consist of items. Tool results are placed directly after the message
 * with their calls, because providers require it; leading system texts become one message, because many chat
 * templates accept only one.
 */
export class Conversation {
  readonly #entries: Entry[] = []
  readonly #calls = new Map<string, Turn>()
  /** The assistant's turn that the next assistant item continues. */
  #turn: Turn | undefined

  system(parts: readonly TextPart[]): void {
    this.#turn = undefined
    const last = this.#entries.at(-1)
    if (last?.role === 'system') {
      // Pushed one by one, here and below: repeated copies by spreading would take hours, and as call arguments the parts
      // could overflow the stack.
      for (const part of parts) last.parts.push(part)
    } else this.#entries.push({ role: 'system', parts: [...parts] })
  }

  user(parts: readonly ContentPart[]): void {
    this.#turn = undefined
    this.#entries.push({ role: 'user', parts: [...parts] })
  }

  reasoning(text: string): void {
    const turn = this.#assistant()
    if (isBegun(turn)) turn.lastReasoning = lines(turn.lastReasoning, text)
    else turn.reasoning = lines(turn.reasoning, text)
  }

  /** Starts a new assistant message with the next assistant item. */
  nextTurn(): void {
    this.#turn = undefined
  }

  /** Adds to the text of the current assistant message. */
  addText(text: string): void {
    const turn = this.#assistant()
    turn.content = (turn.content ?? '') + text
  }

  /**
   * Adds an assistant text. It starts a message of its own, unless the current one contains only reasoning. Reasoning
   * directly before the text moves to its message.
   */
  text(text: string): void {
    const former = this.#turn
    if (former !== undefined && isBegun(former)) {
      this.#turn = undefined
      this.#assistant().reasoning = former.lastReasoning
      former.lastReasoning = ''
    }
    this.#assistant().content = text
  }

  call(call: HistoryCall): void {
    const turn = this.#assistant()
    turn.calls.push(call)
    this.#calls.set(call.id, turn)
  }

  /** @throws ApiError where no earlier call has this id */
  result(id: string, parts: readonly ContentPart[], param: string): void {
    const turn = this.#calls.get(id)
    if (turn === undefined) {
      const message = `"${param}" is the result of a tool call that does not stand before it.`
      throw new ApiError('invalid_request_error', message, { param })
    }
    const text = textOf(parts.filter((part) => part.type === 'text'))
    turn.results.push({ role: 'tool', tool_call_id: id, content: text })
    for (const part of parts) if (part.type !== 'text') turn.media.push(part)
    this.#turn = undefined
  }

  /** The `messages` of a chat request. */
  messages(): readonly JsonObject[] {
    return this.#entries.flatMap((entry) =>
      entry.role === 'assistant' ? turnMessages(entry) : [plainMessage(entry)],
    )
  }

  #assistant(): Turn {
    if (this.#turn === undefined) {
      this.#turn = {
        role: 'assistant',
        reasoning: '',
        lastReasoning: '',
        content: undefined,
        calls: [],
        results: [],
        media: [],
      }
      this.#entries.push(this.#turn)
    }
    return this.#turn
  }
}

function plainMessage({ role, parts }: Exclude<Entry, Turn>): JsonObject {
  const onlyText = parts.every((part) => part.type === 'text')
  return { role, content: onlyText ? textOf(parts) : parts }
}

/** Whether a turn contains more than reasoning. */
function isBegun({ content, calls }: Turn): boolean {
  return content !== undefined || calls.length > 0
}

function lines(first: string, second: string): string {
  return first === '' || second === '' ? first + second : `${first}\n${second}`
}

function turnMessages(turn: Turn): JsonObject[] {
  const { content, calls, results, media } = turn
  const reasoning = lines(turn.reasoning, turn.lastReasoning)
  const assistant = {
    role: 'assistant',
    content: content ?? (calls.length > 0 ? null : ''),
    ...(reasoning !== '' && { reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, arguments: text }) => ({
        id,
        type: 'function',
        function: { name, arguments: text },
      })),
    }),
  }
  return [assistant, ...results, ...(media.length > 0 ? [{ role: 'user', content: media }] : [])]
}

/** The texts of one message, joined as paragraphs. */
function textOf(parts: readonly ContentPart[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('\n\n')
}
