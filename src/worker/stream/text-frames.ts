import { optionalObject, optionalObjects, parseJsonObject } from './json-object.ts'

/** The JSON of a frame around its text: whatever is put between the two, nothing else of the frame changes. */
interface Shape {
  readonly before: string
  readonly after: string
}

/** Frames of a stream that never repeats itself, such as one that counts usage in each, are not studied for long. */
const MAX_LEARNED = 4

/** What may stand in a JSON string as it is, both read and printed. */
const PLAIN = /^[^"\\\p{Cc}\p{Cs}]+$/u

const PROBE = 'probe'

/**
 * Recognises frames that repeat an earlier one in everything but their text, as nearly all of a stream do. Of such
 * a frame the text is all there is to read: parsing it would say nothing new.
 */
export class TextFrames {
  #shape: Shape | undefined
  #learned = 0

  /** The text of a frame that is otherwise a known one; undefined where only parsing can tell. */
  read(data: string): string | undefined {
    if (this.#shape === undefined) return undefined
    const { before, after } = this.#shape
    if (data.length <= before.length + after.length) return undefined
    if (!data.startsWith(before) || !data.endsWith(after)) return undefined
    const text = data.slice(before.length, data.length - after.length)
    return PLAIN.test(text) ? text : undefined
  }

  /**
   * Learns from a frame that said nothing but this text, as the content of its only choice, and would say nothing
   * more if it came again. Other frames have no such text, and teach nothing.
   */
  learn(data: string, text: string | undefined): void {
    if (text === undefined || text === PROBE || !PLAIN.test(text)) return
    if (this.#learned === MAX_LEARNED) return
    this.#learned += 1
    const at = data.indexOf(`"${text}"`)
    if (at < 0) return
    const shape = { before: data.slice(0, at + 1), after: data.slice(at + 1 + text.length) }
    // The same characters may stand elsewhere. Where another text in this place is the content, this is the place.
    if (contentOf(shape.before + PROBE + shape.after) === PROBE) this.#shape = shape
  }
}

function contentOf(data: string): unknown {
  try {
    const [choice] = optionalObjects(parseJsonObject(data)['choices'])
    return optionalObject(choice?.['delta'])?.['content']
  } catch {
    // Between the quotes was no string, so what is there now is no JSON.
    return undefined
  }
}
