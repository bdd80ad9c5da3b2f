import { MalformedEvidence } from './malformed-evidence.ts'
import { readText } from './read-document.ts'

/** Deeper documents are refused, so that no later reader can run out of stack. */
const MAX_DEPTH = 64

/** Exceptions from the rules, for some documents. */
export interface StrictJsonOptions {
  readonly maxDepth?: number
  /** Accepts half of a surrogate pair, which the text of a model may contain. */
  readonly halfPairs?: 'accept'
}

/**
 * Parses signed JSON (RFC 8259). Repeated members are refused, because two readers could disagree on what was signed;
 * so are `__proto__` members, nesting beyond 64 levels, or beyond `maxDepth`, malformed UTF-8, and strings with half of a
 * surrogate pair, which has no UTF-8 and which canonical forms refuse (RFC 7493, section 2.1; RFC 8785, section 3.2.2.2).
 * @throws MalformedEvidence when the input is refused; the message names the document
 */
export function parseStrictJson(
  input: string | Uint8Array,
  document: string,
  { maxDepth = MAX_DEPTH, halfPairs }: StrictJsonOptions = {},
): unknown {
  const text = typeof input === 'string' ? input : readText(input, document)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new MalformedEvidence(document, 'not JSON')
  }
  const fault = findFault(text, maxDepth) ?? (halfPairs ? undefined : findHalfPair(text))
  if (fault !== undefined) throw new MalformedEvidence(document, fault)
  return value
}

/** A bracket, or a complete string. `isName`: whether a colon follows, so that the string is a member's name. */
interface Token {
  readonly text: string
  readonly isName: boolean
}

/**
 * Finds the brackets and strings of text that is known to be JSON. A regular expression that matches complete strings
 * would run out of stack at some millions of escapes.
 */
function* tokensOf(text: string): Generator<Token, void, undefined> {
  const start = /[{}[\]"]/g
  for (let found = start.exec(text); found !== null; found = start.exec(text)) {
    const { index } = found
    if (found[0] === '"') start.lastIndex = endOfString(text, index)
    const end = start.lastIndex
    yield { text: text.slice(index, end), isName: found[0] === '"' && hasColon(text, end) }
  }
}

/** The index after the quote that ends a string: one with an even number of backslashes before it. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); ; quote = text.indexOf('"', quote + 1)) {
    let from = quote
    while (text[from - 1] === '\\') from -= 1
    if ((quote - from) % 2 === 0) return quote + 1
  }
}

function hasColon(text: string, end: number): boolean {
  let at = end
  while (' \t\r\n'.includes(text[at] ?? '.')) at += 1
  return text[at] === ':'
}

/** Scans text that is known to be JSON; the stack holds the names seen in each open object. */
function findFault(text: string, maxDepth: number): string | undefined {
  const open: Set<string>[] = []
  for (const { text: token, isName } of tokensOf(text)) {
    if (token === '{' || token === '[') {
      if (open.push(new Set()) > maxDepth) return `nested deeper than ${maxDepth}`
    } else if (token === '}' || token === ']') {
      open.pop()
    } else if (isName) {
      const name: unknown = JSON.parse(token)
      const seen = open.at(-1)
      if (typeof name !== 'string' || name === '__proto__') return 'forbidden member name'
      if (seen?.has(name)) return 'duplicate member name'
      seen?.add(name)
    }
  }
  return undefined
}

const ESCAPED_HALF = /\\u[dD][89a-fA-F]/

/** Finds half of a surrogate pair. An unescaped one is possible only in text that was not decoded from UTF-8. */
function findHalfPair(text: string): string | undefined {
  if (text.isWellFormed() && !ESCAPED_HALF.test(text)) return undefined
  for (const { text: token } of tokensOf(text)) {
    const value: unknown = token.startsWith('"') ? JSON.parse(token) : ''
    if (typeof value !== 'string' || !value.isWellFormed()) return 'half of a surrogate pair'
  }
  return undefined
}
