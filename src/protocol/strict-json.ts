import { fromUtf8 } from './bytes.ts'
import { MalformedEvidence } from './malformed-evidence.ts'

/** Deeper documents are refused, so that no later reader can run out of stack. */
const MAX_DEPTH = 64

/** What a document may be that most may not. */
export interface StrictJsonOptions {
  readonly maxDepth?: number
  /** Accepts half of a surrogate pair: what a model says may have one. */
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
  const text = typeof input === 'string' ? input : decode(input, document)
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

function decode(bytes: Uint8Array, document: string): string {
  try {
    return fromUtf8(bytes)
  } catch {
    throw new MalformedEvidence(document, 'not UTF-8')
  }
}

/** Matches the tokens that matter here: brackets, and whole strings with the colon that makes them names. */
const TOKEN = /[{}[\]]|"[^"\\]*(?:\\.[^"\\]*)*"(?<colon>[ \t\r\n]*:)?/g

/** Scans text that is known to be JSON; the stack holds the names seen in each open object. */
function findFault(text: string, maxDepth: number): string | undefined {
  const open: Set<string>[] = []
  for (const match of text.matchAll(TOKEN)) {
    const token = match[0]
    if (token === '{' || token === '[') {
      if (open.push(new Set()) > maxDepth) return `nested deeper than ${maxDepth}`
    } else if (token === '}' || token === ']') {
      open.pop()
    } else if (match.groups?.['colon'] !== undefined) {
      const name: unknown = JSON.parse(token.slice(0, -match.groups['colon'].length))
      const seen = open.at(-1)
      if (typeof name !== 'string' || name === '__proto__') return 'forbidden member name'
      if (seen?.has(name)) return 'duplicate member name'
      seen?.add(name)
    }
  }
  return undefined
}

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/g
const ESCAPED_HALF = /\\u[dD][89a-fA-F]/

/** Only text that was no UTF-8 can have one unescaped. */
function findHalfPair(text: string): string | undefined {
  if (text.isWellFormed() && !ESCAPED_HALF.test(text)) return undefined
  const strings = (text.match(STRING) ?? []).map((string): unknown => JSON.parse(string))
  const isHalf = strings.some((value) => typeof value !== 'string' || !value.isWellFormed())
  return isHalf ? 'half of a surrogate pair' : undefined
}
