import type { Delta } from './delta.ts'
import type { Logprobs } from './logprobs.ts'
import type { ToolFragment } from './tool-calls.ts'

/** The kind of a block, in formats whose answers consist of blocks. */
export type BlockHead =
  | { readonly kind: 'reasoning' | 'text' | 'refusal' }
  | { readonly kind: 'tool'; readonly id: string; readonly name: string }

/** Receives blocks one after the other: `start`, any number of `piece`, `end`. A tool's pieces are its arguments. */
export interface BlockSink {
  start(head: BlockHead): void
  /**
   * @param hasWaited whether the piece was passed to `hold` before: it waited behind an open call, or for its text to begin
   */
  piece(text: string, logprobs: Logprobs | null, hasWaited: boolean): void
  /** @param isLast whether no block follows: only the last one can be cut off where an answer ends too early */
  end(isLast: boolean): void
}

type TextKind = 'reasoning' | 'text' | 'refusal'

interface Piece {
  readonly text: string
  readonly logprobs: Logprobs | null
}

/** A block that is open, or that waits for the open one to end. */
interface TextBlock {
  readonly kind: TextKind
  readonly pieces: Piece[]
}

interface ToolBlock {
  readonly kind: 'tool'
  readonly id: string
  name: string
  readonly pieces: Piece[]
}

/**
 * Turns the sequence of deltas into blocks, of which one is open at a time. A chat delta may continue any of its tool calls
 * at any time, so everything that arrives while a call is open waits until the end; text, reasoning and the first call pass
 * immediately.
 */
export class Blocks {
  readonly #sink: BlockSink
  readonly #hold: (text: string, logprobs: Logprobs | null) => void
  readonly #tools = new Map<number, ToolBlock>()
  #open: TextKind | ToolBlock | undefined
  /** Whether `start` was called for the open tool call: its name is complete only when arguments arrive. */
  #announced = false
  #waiting: (TextBlock | ToolBlock)[] = []
  /** Log probabilities of tokens that have produced no text yet: the first bytes of a character whose rest follows. */
  #early: Logprobs[] = []

  /** @param hold called with each piece that has to wait for its block */
  constructor(sink: BlockSink, hold?: (text: string, logprobs: Logprobs | null) => void) {
    this.#sink = sink
    this.#hold = hold ?? (() => {})
  }

  /** The kind of the open block. */
  get open(): BlockHead['kind'] | undefined {
    return typeof this.#open === 'object' ? 'tool' : this.#open
  }

  take({ reasoning, content, refusal, toolCalls, logprobs }: Delta): void {
    const onlyContent = reasoning === undefined && refusal === undefined && toolCalls.length === 0
    // Log probabilities without text so far belonged to a character of the reasoning or of the call.
    if (!onlyContent) this.#early = []
    if (reasoning !== undefined) this.#text('reasoning', reasoning, null)
    if (content) this.#content(content, logprobs)
    // Log probabilities without text that come with reasoning or a call belong to its tokens, and must not open a text
    // block.
    else if (onlyContent && logprobs !== null) this.#withoutText(logprobs)
    if (refusal !== undefined) this.#text('refusal', refusal, null)
    for (const fragment of toolCalls) this.#tool(fragment)
  }

  /** Ends the open block and emits the waiting ones. */
  finish(): void {
    const last = this.#waiting.at(-1)
    this.#close(last === undefined)
    for (const block of this.#waiting) {
      this.#sink.start(block)
      for (const { text, logprobs } of block.pieces) this.#sink.piece(text, logprobs, true)
      this.#sink.end(block === last)
    }
    this.#waiting = []
  }

  #content(text: string, logprobs: Logprobs | null): void {
    for (const early of this.#early.splice(0)) this.#text('text', '', early, true)
    this.#text('text', text, logprobs)
  }

  #withoutText(logprobs: Logprobs): void {
    if (this.#open === 'text') return this.#sink.piece('', logprobs, false)
    this.#hold('', logprobs)
    this.#early.push(logprobs)
  }

  /** @param isHeld whether the piece was passed to `hold` when it began to wait */
  #text(kind: TextKind, text: string, logprobs: Logprobs | null, isHeld = false): void {
    if (typeof this.#open === 'object') {
      if (!isHeld) this.#hold(text, logprobs)
      const last = this.#waiting.at(-1)
      if (last?.kind === kind) last.pieces.push({ text, logprobs })
      else this.#waiting.push({ kind, pieces: [{ text, logprobs }] })
      return
    }
    if (this.#open !== kind) {
      this.#close()
      this.#open = kind
      this.#sink.start({ kind })
    }
    this.#sink.piece(text, logprobs, isHeld)
  }

  #tool({ index, id, function: called }: ToolFragment): void {
    let block = this.#tools.get(index)
    if (block === undefined) {
      block = { kind: 'tool', id: id ?? '', name: '', pieces: [] }
      this.#tools.set(index, block)
      if (typeof this.#open === 'object') this.#waiting.push(block)
      else this.#openTool(block)
    }
    block.name += called.name ?? ''
    if (called.arguments === '') return
    if (block !== this.#open) {
      this.#hold(called.arguments, null)
      block.pieces.push({ text: called.arguments, logprobs: null })
      return
    }
    this.#announce(block)
    this.#sink.piece(called.arguments, null, false)
  }

  #openTool(block: ToolBlock): void {
    this.#close()
    this.#open = block
    this.#announced = false
  }

  #announce(block: ToolBlock): void {
    if (this.#announced) return
    this.#announced = true
    this.#sink.start(block)
  }

  #close(isLast = false): void {
    if (this.#open === undefined) return
    // Of a call that was cut off before its arguments: all others have some by now.
    if (typeof this.#open === 'object') this.#announce(this.#open)
    this.#sink.end(isLast)
    this.#open = undefined
  }
}
