import { fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { JsonOutline, type LargeContainer, type NestedPart, type PlainPart } from './outline.ts'
import { JsonSyntaxError } from './scan.ts'

export interface PartLimits {
  /** About how many bytes are parsed in one go; a single string may be longer. */
  readonly partBytes: number
  /** Maximum memory of the parsed values, by estimate, bytes. */
  readonly maxMemoryBytes: number
  /** Lets other requests run. */
  readonly pause: () => Promise<void>
}

/** The values of a text would take more memory than allowed once parsed. */
export class TooManyValues extends Error {
  override readonly name = 'TooManyValues'
}

/** Bytes scanned between two pauses: less than two milliseconds of work. */
const SLICE_BYTES = 512 * 1024

/**
 * Parses the JSON text of an array or an object like `JSON.parse`, but in parts with pauses between them: parsing 16 MiB in
 * one go blocks every other request of the thread for up to several seconds. Nesting deeper than `MAX_NESTING` is refused.
 * @throws JsonSyntaxError where the text is not valid JSON
 * @throws TooManyValues where the values would take too much memory
 */
export async function parseInParts(bytes: Bytes, limits: PartLimits): Promise<unknown> {
  const { partBytes, maxMemoryBytes, pause } = limits
  const outline = new JsonOutline(bytes, partBytes)
  for (let start = 0; start < bytes.length; start += SLICE_BYTES) {
    outline.readTo(Math.min(bytes.length, start + SLICE_BYTES))
    if (outline.memory > maxMemoryBytes) throw new TooManyValues()
    await pause()
  }
  return valueOf(bytes, outline.root(), pause)
}

type Pause = PartLimits['pause']

async function valueOf(bytes: Bytes, { valueStart, end, container }: NestedPart, pause: Pause) {
  if (container !== undefined) {
    return container.isObject ? objectOf(bytes, container, pause) : arrayOf(bytes, container, pause)
  }
  await pause()
  return parse(textOf(bytes, valueStart, end))
}

async function arrayOf(bytes: Bytes, { parts }: LargeContainer, pause: Pause): Promise<unknown[]> {
  const elements: unknown[] = []
  for (const part of parts) {
    if (isNested(part)) {
      if (textOf(bytes, part.start, part.valueStart).trim() !== '') throw malformed(part)
      elements.push(await valueOf(bytes, part, pause))
    } else {
      await pause()
      const run = parse(`[${textOf(bytes, part.start, part.end)}]`)
      if (!Array.isArray(run) || run.length === 0) throw malformed(part)
      for (const element of run) elements.push(element)
    }
  }
  return elements
}

async function objectOf(bytes: Bytes, { parts }: LargeContainer, pause: Pause): Promise<object> {
  const members: [string, unknown][] = []
  for (const part of parts) {
    if (isNested(part)) {
      const name = `{${textOf(bytes, part.start, part.valueStart)}0}`
      const [[only] = []] = membersOf(name, part)
      members.push([only ?? '', await valueOf(bytes, part, pause)])
    } else {
      await pause()
      for (const member of membersOf(`{${textOf(bytes, part.start, part.end)}}`, part)) {
        members.push(member)
      }
    }
  }
  // As in `JSON.parse`, the last of several members with one name counts, and `__proto__` is an ordinary name.
  return Object.fromEntries(members)
}

function membersOf(text: string, part: PlainPart): [string, unknown][] {
  const members: [string, unknown][] = Object.entries(Object(parse(text)))
  if (members.length === 0) throw malformed(part)
  return members
}

function isNested(part: PlainPart | NestedPart): part is NestedPart {
  return 'valueStart' in part
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new JsonSyntaxError('a part is not valid JSON')
  }
}

function textOf(bytes: Bytes, start: number, end: number): string {
  try {
    return fromUtf8(bytes.subarray(start, end))
  } catch {
    throw new JsonSyntaxError('the text is not valid UTF-8')
  }
}

function malformed({ start }: PlainPart): JsonSyntaxError {
  return new JsonSyntaxError(`unexpected byte at position ${start}`)
}
