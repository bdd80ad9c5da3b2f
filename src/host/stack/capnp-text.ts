/** A value of a Cap'n Proto text file. */
export type CapnpValue =
  | string
  | number
  | boolean
  | RawText
  | readonly CapnpValue[]
  | { readonly [field: string]: CapnpValue }

/** Text that is written unquoted: the name of an enumerant, or an `embed`. */
export class RawText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** The text form of a value: lists in brackets, structs in parentheses, strings escaped. */
export function capnpText(value: CapnpValue): string {
  if (value instanceof RawText) return value.text
  if (typeof value === 'string') return quoted(value)
  if (typeof value !== 'object') return String(value)
  if (isList(value)) return `[${value.map(capnpText).join(', ')}]`
  const fields = Object.entries(value).map(([name, member]) => `${name} = ${capnpText(member)}`)
  return `(${fields.join(', ')})`
}

const ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '\n': '\\n' }

function quoted(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what must be escaped
  const escaped = text.replace(/["\\\u0000-\u001f\u007f]/g, (char) => ESCAPES[char] ?? hex(char))
  return `"${escaped}"`
}

function hex(char: string): string {
  return `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`
}

function isList(value: CapnpValue): value is readonly CapnpValue[] {
  return Array.isArray(value)
}
