import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  isBlank,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './byte-codes.ts'
import { JsonSyntaxError, MAX_NESTING } from './scan.ts'
import { CONTAINER_BYTES, VALUE_BYTES } from './value-memory.ts'

/** A section of JSON text that is parsed in one go: a value, or elements or members between two commas. */
export interface PlainPart {
  readonly start: number
  readonly end: number
}

/** A value inside a container, together with what precedes it: the name and colon of a member, nothing in an array. */
export interface NestedPart extends PlainPart {
  readonly valueStart: number
  /** Undefined: the value is parsed in one go. */
  readonly container: LargeContainer | undefined
}

/** An array or an object that is parsed in parts. */
export interface LargeContainer {
  readonly isObject: boolean
  readonly parts: readonly (PlainPart | NestedPart)[]
}

/**
 * Finds where JSON text can be cut so that it can be parsed in parts, in one pass that can be interrupted. It looks only at
 * brackets, commas and strings: the parser of the parts checks whether they are valid JSON.
 */
export class JsonOutline {
  readonly #bytes: Uint8Array
  readonly #partBytes: number
  #at = 0
  #inString = false
  #escaped = false
  #memory = 0
  #depth = 0
  #root: NestedPart | undefined
  // State of the open container at each depth; the text around the root is depth 0.
  readonly #starts: number[] = [0]
  readonly #isObject: boolean[] = [false]
  /** The offset from which text belongs to no part yet. */
  readonly #from: number[] = [0]
  readonly #lastComma: number[] = [-1]
  /** Whether a nested part has just ended, so that only a comma may follow. */
  readonly #afterNested: boolean[] = [false]
  readonly #parts: ((PlainPart | NestedPart)[] | undefined)[] = [undefined]

  /** @param partBytes about how many bytes are parsed in one go; a single string may be longer */
  constructor(bytes: Uint8Array, partBytes: number) {
    this.#bytes = bytes
    this.#partBytes = partBytes
  }

  /** The estimated memory of the values found so far, once parsed, bytes. */
  get memory(): number {
    return this.#memory
  }

  /**
   * Continues reading up to the offset `end`.
   * @throws JsonSyntaxError where brackets or commas are misplaced, or the text is nested too deeply
   */
  readTo(end: number): void {
    const bytes = this.#bytes
    let inString = this.#inString
    let escaped = this.#escaped
    let at = this.#at
    for (; at < end; at++) {
      const byte = bytes[at]
      if (inString) {
        if (escaped) escaped = false
        else if (byte === BACKSLASH) escaped = true
        else if (byte === QUOTE) inString = false
      } else if (byte === QUOTE) inString = true
      else if (byte === COMMA) this.#comma(at)
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#open(at, byte === OPEN_BRACE)
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        this.#close(at, byte === CLOSE_BRACE)
      }
    }
    this.#inString = inString
    this.#escaped = escaped
    this.#at = at
  }

  /**
   * The outermost value, an array or an object. To be called once everything was read.
   * @throws JsonSyntaxError where there is none, or more text follows
   */
  root(): NestedPart {
    const root = this.#root
    if (root === undefined) throw this.#malformed(this.#at)
    this.#requireBlank(root.end, this.#at)
    return root
  }

  #open(at: number, isObject: boolean): void {
    if (this.#root !== undefined || this.#depth === MAX_NESTING) throw this.#malformed(at)
    if (this.#depth === 0) this.#requireBlank(0, at)
    this.#memory += CONTAINER_BYTES
    const depth = (this.#depth += 1)
    this.#starts[depth] = at
    this.#isObject[depth] = isObject
    this.#from[depth] = at + 1
    this.#lastComma[depth] = at
    this.#afterNested[depth] = false
    this.#parts[depth] = undefined
  }

  #comma(at: number): void {
    const depth = this.#depth
    if (depth === 0) throw this.#malformed(at)
    this.#memory += VALUE_BYTES
    const from = this.#from[depth] ?? 0
    if (this.#afterNested[depth]) this.#endNested(depth, at)
    else if (at - from >= this.#partBytes) this.#add(depth, { start: from, end: at }, at + 1)
    this.#lastComma[depth] = at
  }

  #close(at: number, isObject: boolean): void {
    const depth = this.#depth
    if (depth === 0 || this.#isObject[depth] !== isObject) throw this.#malformed(at)
    const start = this.#starts[depth] ?? 0
    const parts = this.#parts[depth]
    const from = this.#from[depth] ?? 0
    if (this.#afterNested[depth]) this.#requireBlank(from, at)
    else parts?.push({ start: from, end: at })
    const container = parts === undefined ? undefined : { isObject, parts }
    const outer = (this.#depth -= 1)
    const value = { valueStart: start, end: at + 1, container }
    if (outer === 0) this.#root = { start, ...value }
    else if (parts !== undefined || at - (this.#from[outer] ?? 0) >= this.#partBytes) {
      this.#addNested(outer, value)
    }
  }

  /** Adds a value that is parsed by itself; what precedes it in its container becomes a part of its own. */
  #addNested(depth: number, value: Omit<NestedPart, 'start'>): void {
    const from = this.#from[depth] ?? 0
    const lastComma = this.#lastComma[depth] ?? 0
    if (this.#afterNested[depth]) throw this.#malformed(value.valueStart)
    if (lastComma >= from) this.#add(depth, { start: from, end: lastComma }, lastComma + 1)
    this.#add(depth, { start: Math.max(from, lastComma + 1), ...value }, value.end)
    this.#afterNested[depth] = true
  }

  #endNested(depth: number, at: number): void {
    this.#requireBlank(this.#from[depth] ?? 0, at)
    this.#from[depth] = at + 1
    this.#afterNested[depth] = false
  }

  #add(depth: number, part: PlainPart | NestedPart, next: number): void {
    const parts = (this.#parts[depth] ??= [])
    parts.push(part)
    this.#from[depth] = next
  }

  #requireBlank(start: number, end: number): void {
    for (let at = start; at < end; at++) {
      if (!isBlank(this.#bytes[at])) throw this.#malformed(at)
    }
  }

  #malformed(at: number): JsonSyntaxError {
    return new JsonSyntaxError(`unexpected byte at position ${at}`)
  }
}
