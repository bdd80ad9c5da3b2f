import { BrokenStream } from './broken-stream.ts'
import {
  isJsonObject,
  optionalObject,
  optionalObjects,
  optionalString,
  printJson,
  type JsonObject,
} from './json-object.ts'

/** A piece of a tool call as clients see it in a stream: nothing in it is ever null. */
export interface ToolFragment {
  readonly index: number
  readonly id?: string
  readonly type?: 'function'
  readonly function: { readonly name?: string; readonly arguments: string }
}

/** A whole tool call as clients see it. */
export interface ToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** The arguments of a call without arguments: clients parse them as JSON, which an empty text is not. */
const NO_ARGUMENTS = '{}'

/** Larger indexes are replaced: clients keep calls in arrays, and a huge index would mean a huge array. */
const MAX_INDEX = 9_999

/** Limit of the characters of ids, names and held arguments that are remembered for one stream; each call counts 64 more. */
const MAX_REMEMBERED = 16 * 1024 * 1024

/** The member that holds calls: `tool_calls` is a list, `function_call` a single one. */
export type CallForm = 'list' | 'single'

/**
 * The calls in a delta or a message. `function_call`, with at most one call, preceded `tool_calls`; some servers still use
 * it. If both are present, `function_call` is a copy.
 */
interface GivenCalls {
  readonly form: CallForm
  readonly calls: readonly JsonObject[]
}

function givenCalls({ tool_calls: list, function_call: single }: JsonObject): GivenCalls {
  const calls = optionalObjects(list)
  if (calls.length > 0 || !isJsonObject(single)) return { form: 'list', calls }
  return { form: 'single', calls: [{ index: 0, function: single }] }
}

/** Whether a `function_call` is empty: some servers fill it with its defaults in a delta that has only text. */
function isUnset(call: JsonObject): boolean {
  const called = optionalObject(call['function']) ?? {}
  const text = argumentsText(called['arguments']) ?? ''
  return !optionalString(called['name']) && (text === '' || text === '{}')
}

/** Whether a delta may hold calls, in either form. */
export function hasCalls({ tool_calls: list, function_call: single }: JsonObject): boolean {
  return Boolean(list) || Boolean(single)
}

/** The finish reason for calls in the form in which they are passed on. */
export function finishReasonOfCalls(reason: string, form: CallForm | undefined): string {
  return form === 'single' && reason === 'function_call' ? 'tool_calls' : reason
}

interface Slot {
  readonly index: number
  readonly providerId: string | undefined
  name: string
  /** Arguments that came before the name; undefined once the call's first fragment was passed on. */
  held: string | undefined
}

/**
 * Rebuilds the tool-call fragments of one stream. Clients concatenate fragments of one `index`, so id, type and name are
 * sent once for each call, and two calls never share an index. A call is passed on once it has a name, because clients
 * expect the name in the first fragment, and could not run a call that never gets one.
 */
export class ToolFragments {
  readonly #responseId: string
  readonly #byProviderIndex = new Map<number, Slot>()
  readonly #byProviderId = new Map<string, Slot>()
  readonly #taken = new Set<number>()
  #nextIndex = 0
  #latest: Slot | undefined
  /** Calls that have received no arguments so far. */
  readonly #bare = new Set<Slot>()
  #remembered = 0
  #unnamed = 0
  /** The form in which this stream has its calls; calls in the other form are copies. */
  #form: CallForm | undefined

  /** @param responseId generates the ids of calls that have none */
  constructor(responseId: string) {
    this.#responseId = responseId
  }

  /**
   * The fragments of one delta, without what was sent before.
   * @throws BrokenStream `malformed` when a fragment is malformed, or when there are too many calls
   */
  rebuild(delta: JsonObject): readonly ToolFragment[] {
    const { form, calls } = givenCalls(delta)
    if (this.#form !== undefined && this.#form !== form) return []
    if (this.#form === undefined && form === 'single' && calls.every(isUnset)) return []
    const fragments = calls.flatMap((fragment) => this.#rebuildOne(fragment) ?? [])
    if (this.#latest !== undefined) this.#form = form
    return fragments
  }

  /**
   * To be called when no more fragments come.
   * @param reason the finish reason: if the answer was cut off, a call without arguments is not completed, because no client
   *   should run it
   * @returns the arguments of calls that received none
   * @throws BrokenStream `malformed` when a call has no name, as in a whole answer
   */
  end(reason: string): readonly ToolFragment[] {
    if (this.#unnamed > 0) throw new BrokenStream('malformed')
    if (isCutOff(reason)) return []
    return Array.from(this.#bare, ({ index }) => ({ index, function: { arguments: NO_ARGUMENTS } }))
  }

  /** The form in which this stream has its calls; undefined before the first call. */
  get form(): CallForm | undefined {
    return this.#form
  }

  #rebuildOne(fragment: JsonObject): ToolFragment | undefined {
    const id = optionalString(fragment['id']) || undefined
    const called = optionalObject(fragment['function']) ?? {}
    const name = optionalString(called['name']) ?? ''
    const text = argumentsText(called['arguments']) ?? ''
    const known = this.#find(fragment['index'], id, name)
    if (known === undefined) {
      if (id === undefined && name === '' && text === '') return undefined
      return this.#continueHeld(this.#open(fragment['index'], id), name, text)
    }
    if (known.held !== undefined) return this.#continueHeld(known, name, text)
    // Some servers repeat the name in every fragment; a client would concatenate the copies.
    const newName = name !== '' && name !== known.name
    if (newName) {
      this.#remember(name.length)
      known.name += name
    }
    if (!newName && text === '') return undefined
    if (text !== '') this.#bare.delete(known)
    return { index: known.index, function: { ...(newName && { name }), arguments: text } }
  }

  /** The first fragment of a call, with everything held back, once the call has a name. */
  #continueHeld(slot: Slot, name: string, text: string): ToolFragment | undefined {
    const held = (slot.held ?? '') + text
    if (name === '') {
      this.#remember(text.length)
      slot.held = held
      return undefined
    }
    this.#remember(name.length)
    slot.name = name
    slot.held = undefined
    this.#unnamed -= 1
    if (held === '') this.#bare.add(slot)
    const { index, providerId } = slot
    const id = providerId ?? generatedId(this.#responseId, index)
    return { index, id, type: 'function', function: { name, arguments: held } }
  }

  /** The slot of the call that a fragment continues; undefined when it begins a new call. */
  #find(index: unknown, id: string | undefined, name: string): Slot | undefined {
    if (!isIndex(index)) {
      if (id !== undefined) return this.#byProviderId.get(id)
      return name === '' || this.#latest?.held !== undefined ? this.#latest : undefined
    }
    const slot = this.#byProviderIndex.get(index)
    // Some servers give every call index 0: another id together with a name begins another call. Another id alone does not,
    // because some servers generate a new id for each fragment. A call that has no name yet takes this one.
    const another = name !== '' && id !== undefined && slot?.providerId !== undefined
    return another && slot.providerId !== id && slot.held === undefined ? undefined : slot
  }

  /** Opens a slot without a name, with the provider's own index where that is free. */
  #open(wanted: unknown, providerId: string | undefined): Slot {
    this.#remember((providerId?.length ?? 0) + 64)
    const index = isIndex(wanted) && !this.#taken.has(wanted) ? wanted : this.#nextIndex
    const slot: Slot = { index, providerId, name: '', held: '' }
    this.#unnamed += 1
    this.#taken.add(index)
    this.#nextIndex = Math.max(this.#nextIndex, index + 1)
    this.#latest = slot
    if (isIndex(wanted)) this.#byProviderIndex.set(wanted, slot)
    if (providerId !== undefined) this.#byProviderId.set(providerId, slot)
    return slot
  }

  #remember(characters: number): void {
    this.#remembered += characters
    if (this.#remembered > MAX_REMEMBERED) throw new BrokenStream('malformed')
  }
}

/** The calls of a whole message. */
export interface MessageCalls {
  readonly toolCalls: readonly ToolCall[]
  /** Undefined where the message has no call. */
  readonly form: CallForm | undefined
}

/**
 * Reads the calls of a whole message.
 * @param reason the answer's finish reason, as for a stream
 * @throws BrokenStream `malformed` when a call has no name, because no client could run it
 */
export function readToolCalls(
  message: JsonObject,
  responseId: string,
  reason: string,
): MessageCalls {
  const { form, calls } = givenCalls(message)
  const isSingle = form === 'single'
  const toolCalls = calls.flatMap((call, index): ToolCall[] => {
    const called = optionalObject(call['function']) ?? {}
    const name = optionalString(called['name']) ?? ''
    const text = argumentsText(called['arguments']) || (isCutOff(reason) ? '' : NO_ARGUMENTS)
    if (isSingle && isUnset(call)) return []
    if (name === '') throw new BrokenStream('malformed')
    const id = optionalString(call['id']) || generatedId(responseId, index)
    return [{ id, type: 'function', function: { name, arguments: text } }]
  })
  return { toolCalls, form: toolCalls.length > 0 ? form : undefined }
}

/** Arguments as JSON text: a string is kept; an object that a server did not serialise is serialised. */
function argumentsText(value: unknown): string | undefined {
  return isJsonObject(value) ? printJson(value) : optionalString(value)
}

/** Whether an answer ended before the model had finished. */
function isCutOff(reason: string): boolean {
  return reason === 'length' || reason === 'max_tokens' || reason === 'content_filter'
}

function isIndex(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_INDEX
}

function generatedId(responseId: string, index: number): string {
  return `call_${responseId}_${index}`
}
