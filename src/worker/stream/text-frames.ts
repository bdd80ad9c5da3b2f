import { optionalObject, optionalObjects, parseJsonObject } from './json-object.ts'

/** The JSON of a frame around its text; only the text between the two parts differs. */
interface Shape {
  readonly before: string
  readonly after: string
}

/**
 * Maximum number of learned frames, so that streams without repetition (such as those with usage in each frame) cost
 * little.
 */
const MAX_LEARNED = 4

/** Characters that appear unescaped in a JSON string. */
const PLAIN = /^[^"\\\p{Cc}\p{Cs}]+$/u

const PROBE = 'probe'

/**
 * Recognises frames that repeat an earlier one in everything but their text, as nearly all frames of a stream do. Only the
 * text of such a frame is read, which saves parsing it.
 */
export class TextFrames {
  #shape: Shape | undefined
  #learned = 0

  /** The text of a frame with a known shape; undefined where the frame must be parsed. */
  read(data: string): string | undefined {
    if (this.#shape === undefined) return undefined
    const { before, after } = this.#shape
    if (data.length <= before.length + after.length) return undefined
    if (!data.startsWith(before) || !data.endsWith(after)) return undefined
    const text = data.slice(before.length, data.length - after.length)
    return PLAIN.test(text) ? text : undefined
  }

  /**
   * Learns the shape of a frame that contains only this text, as the content of its only choice, and can be repeated without
   * changing any count. For other frames, `text` is undefined and nothing is learned.
   */
  learn(data: string, text: string | undefined): void {
    if (text === undefined || text === PROBE || !PLAIN.test(text)) return
    if (this.#learned === MAX_LEARNED) return
    this.#learned += 1
    const at = data.indexOf(`"${text}"`)
    if (at < 0) return
    const shape = { before: data.slice(0, at + 1), after: data.slice(at + 1 + text.length) }
    // The same characters may occur elsewhere in the frame. The position is right if another text in its place
    // becomes the content.
    if (contentOf(shape.before + PROBE + shape.after) === PROBE) this.#shape = shape
  }
}

function contentOf(data: string): unknown {
  try {
    const [choice] = optionalObjects(parseJsonObject(data)['choices'])
    return optionalObject(choice?.['delta'])?.['content']
  } catch {
    // The position was not inside a string, so the frame is no longer valid JSON.
    return undefined
  }
}
